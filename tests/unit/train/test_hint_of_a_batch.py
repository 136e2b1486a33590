"""What teachers are shown: a hint before the prompt of every sample, and the response as it was sampled."""

from pathlib import Path

import numpy as np
import pytest

from strop.algo.batch import Batch, make_batch
from strop.config.tree import Rollout
from strop.errors import DataError, RunError
from strop.render.bytes import ByteRenderer
from strop.sample import Group, Prompt, Sample, Tokens
from strop.train.hint import Hint

HINT = Hint("hint", ByteRenderer(), has_roles=True)


def groups_of(*, opening: list[int] | None = None) -> list[Group]:
    groups = []
    for number in range(2):
        prompt = Prompt(id=f"p{number}", messages=f"a{number}", metadata={"hint": "no" * (number + 1)})
        ids = ByteRenderer().prompt(prompt) + (opening or [])
        sample = Sample(index=number, group_id=number, sequence=Tokens.context(ids), prompt_length=len(ids))
        sample.append_response_tokens(tokens=[97, 98], log_probs=[-1.0, -2.0])
        sample.append_response_tokens(tokens=[99], trainable=False)
        groups.append(Group(number, prompt, [sample]))
    return groups


def batch_of(groups: list[Group]) -> Batch:
    return make_batch(groups, num_updates=1, max_response_tokens=8, temperature=1.0)


def test_a_hint_goes_before_the_prompt_and_columns_stay_as_they_are() -> None:
    groups = groups_of()
    batch = batch_of(groups)
    shown = HINT.shown(batch, groups)
    for number, (plain, told) in enumerate(zip(batch.samples, shown.samples, strict=True)):
        hint = [260, *(b"no" * (number + 1)), 256]
        assert told.tokens == [*hint, *plain.tokens]
        assert told.prompt_length == len(hint) + plain.prompt_length
        assert told.response_tokens == plain.response_tokens
    np.testing.assert_array_equal(shown.offsets, batch.offsets)
    np.testing.assert_array_equal(shown.mask, batch.mask)


def test_a_prompt_that_the_environment_went_on_with_stops_the_run() -> None:
    groups = groups_of(opening=[7])
    with pytest.raises(
        RunError, match=r"^algo\.teacher\.hint_key: the environment opened with messages of its own"
    ):
        HINT.shown(batch_of(groups), groups)


def test_a_hint_that_leaves_no_room_is_named_before_the_run(tiny_dir: Path) -> None:
    prompt = Prompt(id="p", messages="a", metadata={"hint": "x" * 2040})
    HINT.check([prompt], [tiny_dir], Rollout(max_response_tokens=2))
    expected = r"^p has 2046 tokens with its hint \(metadata\.hint\), and with .* = 3 more than the 2048 "
    with pytest.raises(DataError, match=expected):
        HINT.check([prompt], [tiny_dir], Rollout(max_response_tokens=3))
    with pytest.raises(DataError, match=r"^p: metadata\.other = None, expected a text"):
        Hint("other", ByteRenderer(), has_roles=True).check([prompt], [], Rollout())
