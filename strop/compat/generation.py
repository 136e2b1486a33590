"""`slime.rollout.sglang_rollout`: the parts of it that custom generate functions use."""

import asyncio
from typing import Any

from strop.compat.client import post
from strop.compat.sample import Sample
from strop.compat.tokenizer import load_tokenizer

CONCURRENCY = 512


class GenerateState:
    """Tokenizer and sampling parameters of a run. A plain object: one made of other `args` has theirs."""

    def __init__(self, args: Any) -> None:
        self.args = args
        self.tokenizer = load_tokenizer(args.hf_checkpoint)
        self.processor = None
        self.semaphore = asyncio.Semaphore(CONCURRENCY)
        self.aborted = False
        self.sampling_params: dict[str, Any] = {
            "temperature": args.rollout_temperature,
            "top_p": args.rollout_top_p,
            "top_k": args.rollout_top_k,
            "max_new_tokens": args.rollout_max_response_len,
            "stop": args.rollout_stop,
            "stop_token_ids": args.rollout_stop_token_ids,
            "skip_special_tokens": False,
            "no_stop_trim": True,
            "spaces_between_special_tokens": False,
        }


def get_model_url(args: Any, model_name: str, endpoint: str = "/generate") -> str:  # noqa: ARG001 - slime's
    """Where the policy answers; a run has no other model."""
    return f"http://{args.sglang_router_ip}:{args.sglang_router_port}{endpoint}"


async def generate(args: Any, sample: Sample, sampling_params: dict[str, Any]) -> Sample:
    """One reply to a sample's prompt, or to its tokens so far; `sampling_params` stay as they are."""
    tokenizer = GenerateState(args).tokenizer
    if not sample.tokens:
        sample.tokens = list(tokenizer.encode(sample.prompt, add_special_tokens=False))
    room = sampling_params["max_new_tokens"] - sample.response_length
    if room <= 0:
        sample.status = Sample.Status.TRUNCATED
        return sample
    payload = {
        "input_ids": sample.tokens,
        "sampling_params": {**sampling_params, "max_new_tokens": room},
        "return_logprob": True,
    }
    output = await post(get_model_url(args, "policy"), payload)
    drawn = output["meta_info"]["output_token_logprobs"]
    sample.append_response_tokens(
        args,
        tokens=[id for _, id, _ in drawn],
        log_probs=[logp for logp, _, _ in drawn],
        meta_info=output["meta_info"],
        text=output["text"],
    )
    return sample
