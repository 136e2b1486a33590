"""Generate functions as slime's users write them: the form of its source; that of its page, with a tool.

Nothing here knows of strop. The model is asked over HTTP, and every token of a reply is trained with the
log-prob that the engine gave; what the tool says is not.
"""

import re

from slime.rollout.sglang_rollout import GenerateState
from slime.utils.http_utils import post
from slime.utils.types import Sample


async def ask(args, sample, sampling_params):
    """One reply to the sample's tokens so far; returns its text."""
    url = f"http://{args.sglang_router_ip}:{args.sglang_router_port}/generate"
    payload = {"input_ids": sample.tokens, "sampling_params": sampling_params, "return_logprob": True}
    output = await post(url, payload)
    logprobs = output["meta_info"]["output_token_logprobs"]
    sample.append_response_tokens(
        args,
        tokens=[item[1] for item in logprobs],
        log_probs=[item[0] for item in logprobs],
        meta_info=output["meta_info"],
        text=output["text"],
    )
    return output["text"]


async def generate(args, sample: Sample, sampling_params) -> Sample:
    """The source's form: one reply; fields are set by hand."""
    state = GenerateState(args)
    prompt_ids = state.tokenizer.encode(sample.prompt, add_special_tokens=False)
    url = f"http://{args.sglang_router_ip}:{args.sglang_router_port}/generate"
    payload = {"input_ids": prompt_ids, "sampling_params": sampling_params, "return_logprob": True}
    output = await post(url, payload)
    logprobs = output["meta_info"]["output_token_logprobs"]
    response_ids = [item[1] for item in logprobs]
    sample.tokens = prompt_ids + response_ids
    sample.response = output["text"]
    sample.response_length = len(response_ids)
    sample.rollout_log_probs = [item[0] for item in logprobs]
    sample.loss_mask = [1] * len(response_ids)
    finished = output["meta_info"]["finish_reason"]["type"] == "stop"
    sample.status = Sample.Status.COMPLETED if finished else Sample.Status.TRUNCATED
    return sample


async def custom_generate(args, samples: list[Sample], evaluation=False) -> list[Sample]:
    """The page's form: a reply with numbers in it calls the tool, which answers with their sum."""
    for sample in samples:
        await play(args, sample)
    return samples


async def play(args, sample: Sample) -> None:
    tokenizer = GenerateState(args).tokenizer
    sample.tokens = tokenizer.encode(sample.prompt, add_special_tokens=False)
    for _ in range(args.max_turns):
        room = args.rollout_max_response_len - sample.response_length
        if room < 1:
            break
        text = await ask(args, sample, {"max_new_tokens": min(room, 12)})
        numbers = re.findall(r"\d+", text)
        if not numbers:
            break
        message = {"role": "tool", "content": str(sum(map(int, numbers)))}
        answer = tokenizer.apply_chat_template([message], add_generation_prompt=True)
        if sample.response_length + len(answer) >= args.rollout_max_response_len:
            break
        sample.append_response_tokens(args, tokens=answer, trainable=False, text=message["content"])
