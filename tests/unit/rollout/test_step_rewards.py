"""Rewards of steps and turns: at which tokens they are given, and what becomes of them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from cases import case
from scripted import PROMPT, Scripted, finished, finished_group, player_of

from strop.algo import step_credit
from strop.algo.batch import Batch, make_batch
from strop.cli.before_after import Scene
from strop.envs.base import Observation, Reply, Step
from strop.errors import InputError, RewardFailed
from strop.render.bytes import ByteRenderer
from strop.render.token_texts import token_texts
from strop.rewards.returned import checked
from strop.rewards.steps import scores_of_steps, split_steps
from strop.rollout.step_rewards import put_steps, step_ends
from strop.sample import STEP_ENDS, STEP_REWARDS, Group, Prompt, Sample, Scores, Status, Steps
from strop.store.samples import read_samples, write_samples


def test_a_step_ends_with_the_token_that_completes_its_separator() -> None:
    cases: list[tuple[str, list[str], list[int]]] = [
        ("a token of its own", ["a", " b", "\n\n", "c", ""], [2, 4]),
        ("with the words before", ["a", " b.\n\n", "c"], [1, 2]),
        ("with the words behind", ["a", "\n\nc", "d"], [1, 2]),
        ("over two tokens", ["a", "\n", "\nc", "d"], [2, 3]),
        ("two steps in a token", ["a\n\nb\n\nc", "d"], [0, 0, 1]),
        ("empty steps are none", ["a", "\n\n", "\n\n", " ", "\n\n", "b"], [1, 5]),
        ("separator then end of turn", ["a", "\n\n", ""], [2]),
        ("nothing but separators", ["", "\n\n"], []),
        ("nothing", [], []),
    ]
    for name, texts, ends in cases:
        assert step_ends(texts, "\n\n") == ends, name
        assert len(split_steps("".join(texts), "\n\n")) == len(ends), name


def test_bytes_of_one_character_are_one_place() -> None:
    texts = token_texts(list("é→b".encode()), ByteRenderer().decode)
    assert step_ends(texts, "→") == [4, 5]


def lines(sample: Sample) -> Scores:
    """A line is worth its length."""
    return scores_of_steps([float(len(step)) for step in split_steps(sample.response, "\n")], separator="\n")


async def test_what_steps_are_worth_is_on_the_sample_and_in_its_file(tmp_path: Path) -> None:
    player = player_of(Scripted("one\nthree\n\nxx"), reward=lines)
    sample = await finished(player)
    assert sample.reward == 2.0
    write_samples(tmp_path / "s.parquet", [Group(0, PROMPT, [sample])])
    (stored,) = read_samples(tmp_path / "s.parquet")
    for each in (sample, stored):
        assert each.extras[STEP_REWARDS].tolist() == [3.0, 5.0, 2.0]
        assert each.extras[STEP_ENDS].tolist() == [3, 9, 13]


async def test_a_reward_with_too_few_scores_fails_by_name() -> None:
    player = player_of(Scripted("one\ntwo"), reward=lambda _: scores_of_steps([1.0], separator="\n"))
    sample = await finished(player)
    assert sample.status is Status.FAILED
    assert sample.error is not None
    assert "returned 1 scores for the 2 steps that '\\n' parts the response into" in sample.error
    assert STEP_REWARDS not in sample.extras


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (Scores(1.0, steps=Steps((1.0, float("nan")), "\n")), "step 2 is nan; expected a finite number"),
        (Scores(1.0, steps=[1.0]), r"Scores.steps is list \[1.0\]; expected"),  # type: ignore[arg-type]
    ],
)
def test_a_step_that_is_worth_no_number_is_a_failure(scores: Scores, message: str) -> None:
    with pytest.raises(RewardFailed, match=message):
        checked(scores, "reward mine")


def test_a_response_is_worth_what_is_made_of_its_steps() -> None:
    for worth, value in [("min", 0.6), ("prod", 0.432), ("last", 0.6), ("sum", 2.3)]:
        with case(worth):
            made = scores_of_steps([0.9, 0.8, 0.6], separator="\n", worth=worth, named={"x": 1.0})  # type: ignore[arg-type]
            assert made.value == pytest.approx(value)
            assert made.named == {"x": 1.0}


class Paying:
    """Gives these rewards, one a turn; None: none."""

    def __init__(self, *rewards: float | None) -> None:
        self._rewards = list(rewards)

    async def start(self, prompt: Prompt) -> Observation:
        return Observation()

    async def step(self, reply: Reply) -> Step:
        reward = self._rewards.pop(0)
        message = {"role": "user", "content": "on"}
        return Step(Observation((message,)), done=not self._rewards, reward=reward)

    async def close(self) -> None: ...


async def played(*rewards: float | None, max_turns: int = 8) -> Sample:
    engine = Scripted(*["ab"] * len(rewards))
    return await finished(player_of(engine, make_env=lambda: Paying(*rewards), max_turns=max_turns))


async def test_an_environment_may_pay_for_every_turn() -> None:
    sample = await played(1.0, None, 0.5)
    assert sample.reward == 1.5
    assert sample.extras[STEP_REWARDS].tolist() == [1.0, 0.5]
    ends = sample.extras[STEP_ENDS].tolist()
    sampled = sample.sequence.sampled[sample.prompt_length :]
    assert ends == [2, sample.response_length - 1]
    assert sampled[ends].all()
    assert not sampled[ends[0] + 1]


async def test_what_was_paid_counts_when_turns_run_out() -> None:
    sample = await played(1.0, 0.5, 0.25, max_turns=2)
    assert (sample.status, sample.reward) == (Status.TRUNCATED, 1.5)


async def test_an_environment_that_pays_nothing_leaves_it_to_the_reward() -> None:
    sample = await played(None, None)
    assert sample.reward == 0.0
    assert STEP_REWARDS not in sample.extras


async def batch_of(*replies: str) -> Batch:
    player = player_of(Scripted(*replies), reward=lines)
    samples = await finished_group(player, size=len(replies))
    return packed(samples)


def packed(samples: Sequence[Sample]) -> Batch:
    group = Group(0, PROMPT, list(samples))
    return make_batch([group], num_updates=1, max_response_tokens=60, temperature=1.0)


async def test_steps_are_compared_with_all_steps_of_the_group_and_credit_what_led_to_them() -> None:
    batch = await batch_of("a\nbbb", "bb")
    advantage = step_credit.steps(batch)
    assert advantage[:2] == pytest.approx([0.0, 0.0], abs=1e-5)  # (1 − 2) + (3 − 2), over a deviation of 1
    assert advantage[2:6] == pytest.approx([1.0] * 4, abs=1e-5)
    assert advantage[6:] == pytest.approx([0.0] * 3, abs=1e-5)


async def test_turns_are_worth_what_follows_discounted() -> None:
    batch = packed([await played(1.0, 0.5)])
    returns = step_credit.turns(batch, np.zeros(batch.num_tokens), discount=0.5)
    trained = returns[batch.mask]
    assert trained[[0, 1, 2]] == pytest.approx([0.25 + 2**-5 / 2, 0.5 + 2**-4 / 2, 1 + 2**-3 / 2])
    assert trained[3:] == pytest.approx([0.125, 0.25, 0.5])
    assert not returns[~batch.mask].any()


async def test_without_turns_the_reward_is_earned_at_the_end() -> None:
    sample = await finished(player_of(Scripted("42")))
    batch = packed([sample])
    assert step_credit.turns(batch, np.zeros(3), discount=0.5).tolist() == [0.25, 0.5, 1.0]


async def test_a_sample_without_steps_is_named() -> None:
    sample = await finished(player_of(Scripted("42")))
    with pytest.raises(
        InputError, match=r"sample 0 of prompt p has no rewards of steps; algo\.advantage = 'ste"
    ):
        step_credit.steps(packed([sample]))


async def test_one_of_two_samples_of_a_trajectory_without_turns_is_named() -> None:
    samples = await finished_group(player_of(Scripted("42", "43")), size=2)
    samples[1].trajectory_id = 0
    with pytest.raises(InputError, match="its trajectory has other samples"):
        step_credit.turns(packed(samples), np.zeros(6), discount=1.0)


def test_putting_steps_reads_no_text_but_what_the_tokens_say() -> None:
    with pytest.raises(RewardFailed, match="2 scores for the 0 steps"):
        put_steps(Sample(index=0, group_id=0, response="a\nb"), Steps((1, 1), "\n"), ByteRenderer().decode)


async def test_show_tells_what_steps_were_worth(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    from strop.cli.before_after import View
    from strop.cli.scenes import print_view

    sample = await finished(player_of(Scripted("one\nthree"), reward=lines))
    scene = Scene("step 0", [sample], {})
    print_view(Console(no_color=True, width=100), View("", [[scene]]), open_decoder=lambda: None)
    assert "(steps: 3, 5)" in capsys.readouterr().out
