"""How many rows and tokens a step asks for."""

import pytest

from strop.config.load import load_config
from strop.forecast.load import Lengths, load_of

LENGTHS = Lengths(prompts=(10, 20, 30), evals={"dev": (100,) * 50}, response=41, is_measured=False)
BASE = ["--model", "tiny", "--prompts.files", "a.jsonl", "--loop.steps", "1"]
BASE += [
    "--rollout.batch_size",
    "4",
    "--rollout.samples_per_prompt",
    "2",
    "--rollout.max_response_tokens",
    "41",
]


def load(*flags, lengths=LENGTHS):
    return load_of(load_config([], [*BASE, *flags]).config, lengths)


def test_rows_are_the_samples_of_a_step_with_room_for_the_longest():
    rows = load("--rollout.over_sample", "1").rollout
    assert (rows.rows, rows.capacity, rows.waves) == (10, 48, 1)  # 40 tokens are fed, in steps of 16
    assert (rows.prompts, rows.prompt_capacity) == (5, 32)
    assert rows.tokens == 10 * 48 + 5 * 32


def test_a_small_cache_makes_several_waves():
    rows = load("--engine.max_tokens", "128").rollout
    assert (rows.rows, rows.waves) == (2, 4)


def test_a_limit_on_the_context_makes_rows_shorter():
    assert load("--rollout.max_context_tokens", "40").rollout.capacity == 32  # after 10 tokens of prompt


def test_held_out_sets_have_rows_of_their_own():
    dev = '{name = "dev", files = ["b"], samples_per_prompt = 3, temperature = 1.0}'
    found = load("--eval.datasets", f"[{dev}]")
    assert (found.evals["dev"].rows, found.evals["dev"].capacity) == (150, 48)


def test_a_groups_prompt_counts_once_and_a_last_token_is_not_fed():
    found = load()
    assert found.update_tokens == 4 * (20 + 2 * 40)
    assert (found.micro_tokens, found.num_micro, found.micro_targets) == (400, 1, 4 * 2 * 41)


def test_updates_share_the_step_and_micro_batches_the_update():
    found = load("--train.updates_per_step", "2", "--train.max_tokens_per_device", "64")
    assert (found.update_tokens, found.micro_tokens, found.num_micro) == (200, 64, 4)


def test_a_sample_longer_than_a_micro_batch_stands_alone():
    assert load("--train.max_tokens_per_device", "1").micro_tokens == pytest.approx(20 + 41)
