"""What is found in the prompts of a run before it begins: room and budgets."""

import pytest

from strop.config.load import load_config
from strop.config.tree import EvalSet
from strop.errors import DataError
from strop.prompts.checks import Room
from strop.render.bytes import ByteRenderer
from strop.sample import Prompt

TEMPLATE = 3
"""Tokens that the byte renderer adds."""


def room(*flags, positions=1000):
    base = ["--model", "tiny", "--loop.steps", "1", "--prompts.files", "a.jsonl"]
    return Room(load_config([], [*base, *flags]).config, positions)


def check(made, *prompts, where="prompts", dataset=None):
    made.check(prompts, ByteRenderer(), where=where, dataset=dataset)


def prompt(length, **metadata):
    return Prompt(id=f"d:{length}", messages="x" * (length - TEMPLATE), metadata=metadata)


def test_a_row_may_only_lower_its_budget():
    made = room("--rollout.max_response_tokens", "10")
    check(made, prompt(9, max_response_tokens=10))
    with pytest.raises(DataError) as caught:
        check(made, prompt(9, max_response_tokens=11))
    assert str(caught.value) == (
        "prompts: d:9: metadata.max_response_tokens = 11 is more than rollout.max_response_tokens = 10, "
        "which it can only lower; raise rollout.max_response_tokens"
    )


def test_rows_of_a_held_out_set_have_its_budget():
    made = room("--rollout.max_response_tokens", "10")
    dataset = EvalSet(name="dev", files=["d.jsonl"], max_response_tokens=20)
    check(made, prompt(9, max_response_tokens=20), where="eval.datasets.dev", dataset=dataset)
    with pytest.raises(DataError, match=r"is more than eval.datasets.dev.max_response_tokens = 20"):
        check(made, prompt(9, max_response_tokens=21), where="eval.datasets.dev", dataset=dataset)


def test_a_long_prompt_with_a_small_budget_of_its_own_has_room():
    made = room("--rollout.max_response_tokens", "50", positions=64)
    check(made, prompt(40, max_response_tokens=20), prompt(10))
    with pytest.raises(
        DataError, match=r"d:40 has 40 tokens, and with rollout.max_response_tokens = 50 more"
    ):
        check(made, prompt(40))


def test_the_context_limit_makes_room_and_must_leave_a_token():
    made = room("--rollout.max_response_tokens", "50", "--rollout.max_context_tokens", "60", positions=64)
    check(made, prompt(59))
    with pytest.raises(DataError) as caught:
        check(made, prompt(60))
    assert str(caught.value) == (
        "prompts: d:60 has 60 tokens, which leaves none of rollout.max_context_tokens = 60 for a response; "
        "raise it, or shorten the prompt (prompts.max_tokens = 59 leaves such rows out)"
    )
