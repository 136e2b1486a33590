"""Preflight of runs with functions of slime's: what is opened, and rows whose prompts are messages."""

import json

import pytest
from scripted import Noise, finished_group

from strop.config.load import load_config
from strop.errors import DataError
from strop.preflight import prepare
from strop.rollout.episode import Parts
from strop.rollout.group import Player
from strop.sample import Status

ROW = {"prompt": [{"role": "user", "content": "What is 6 * 7?"}], "label": "42"}

FUNCTIONS = """
from slime.rollout.sglang_rollout import GenerateState
from slime.utils.http_utils import post

async def custom_generate(args, samples, evaluation=False):
    for sample in samples:
        messages = list(sample.prompt)
        tokenizer = GenerateState(args).tokenizer
        sample.tokens = tokenizer.apply_chat_template(messages, add_generation_prompt=True)
        url = f"http://{args.sglang_router_ip}:{args.sglang_router_port}/generate"
        output = await post(url, {"input_ids": sample.tokens, "return_logprob": True})
        drawn = output["meta_info"]["output_token_logprobs"]
        sample.append_response_tokens(
            args, tokens=[d[1] for d in drawn], log_probs=[d[0] for d in drawn], meta_info=output["meta_info"]
        )
    return samples

async def reward_func(args, sample, **kwargs):
    return float(sample.prompt[0]["role"] == "user")
"""


def config_of(tmp_path, tiny_dir, *flags):
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROW) + "\n")
    (tmp_path / "mine.py").write_text(FUNCTIONS)
    base = f"--hf-checkpoint {tiny_dir} --num-rollout 1 --prompt-data {tmp_path}/rows.jsonl"
    return load_config([], [*base.split(), "--rollout-max-response-len", "32", *flags]).config


async def test_messages_reach_a_function_as_the_row_has_them(tmp_path, tiny_dir):
    config = config_of(
        tmp_path,
        tiny_dir,
        "--apply-chat-template=false",
        f"--custom-generate-function-path={tmp_path}/mine.py:custom_generate",
        f"--custom-rm-path={tmp_path}/mine.py:reward_func",
    )
    prepared = prepare(config)
    parts = Parts(Noise(), prepared.renderer, prepared.make_env, config.env)
    player = Player(parts, prepared.rewards, prepared.generate, seed=0, hooks=prepared.hooks)
    (prompt,) = prepared.source.next(1)
    samples = await finished_group(player, size=2, max_tokens=32, prompt=prompt)
    await prepared.rewards.close()
    await prepared.slime.close()
    assert [(s.error, s.reward, s.status) for s in samples] == [(None, 1.0, Status.COMPLETED)] * 2


def test_without_such_a_function_messages_need_the_template(tmp_path, tiny_dir):
    with pytest.raises(DataError, match=r"prompts.chat_template = false needs plain text"):
        prepare(config_of(tmp_path, tiny_dir, "--apply-chat-template=false"))
