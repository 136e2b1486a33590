"""Evaluation: the same noise every time, failures counted apart, an error that is over prompts."""

import asyncio
import json
import math

import pytest
from scripted import Noise, player_of

from strop.config.load import load_config
from strop.config.tree import EvalSet, Prompts, Rollout
from strop.errors import ConfigError
from strop.eval.evaluate import evaluate, summarise
from strop.prompts.open import open_eval_set
from strop.rollout.group import new_group
from strop.rollout.sampling import eval_sampling
from strop.sample import Prompt, Sampling, Status, Tokens
from strop.telemetry.catalogue import declared

PROMPTS = [Prompt(id=str(i), messages=f"question {i}", label="a") for i in range(6)]
SECTION = EvalSet(name="held_out", source="task.py:make", n=6, samples_per_prompt=2, temperature=1.0)
SAMPLING = Sampling(max_tokens=8, temperature=1.0)


def first_letter(sample):
    """In 0 … 25: the noise of the first token."""
    return ord(sample.response[0]) - 97


async def evaluated(*, reward=first_letter, section=SECTION, seed_of=None, prompts=PROMPTS, told=None):
    player = seed_of or player_of(Noise(), reward=reward)
    return await evaluate(player, section, prompts, SAMPLING, *([told] if told else []))


def rewarded(rewards):
    """A group with these rewards; None is a sample that failed."""
    group = new_group(0, PROMPTS[0], first_index=0, size=len(rewards))
    for sample, reward in zip(group.samples, rewards, strict=True):
        sample.reward = reward
        sample.status = Status.FAILED if reward is None else Status.COMPLETED
    return group


def responses(result):
    return [[s.response for s in group.samples] for group in result.groups]


async def test_noise_is_the_same_at_every_evaluation():
    one, two = await evaluated(), await evaluated()
    assert responses(one) == responses(two)
    assert (one.mean, one.stderr) == (two.mean, two.stderr)


async def test_noise_does_not_depend_on_what_was_played_before():
    player = player_of(Noise(), reward=first_letter)
    first = await evaluated(seed_of=player)
    await evaluated(seed_of=player, prompts=PROMPTS[3:])
    assert responses(await evaluated(seed_of=player)) == responses(first)


async def test_samples_and_data_sets_have_noise_of_their_own():
    one, other = await evaluated(), await evaluated(section=SECTION.model_copy(update={"name": "other"}))
    assert len({response for group in responses(one) for response in group}) == 12
    assert responses(one) != responses(other)


async def test_every_prompt_is_played_as_often_as_asked():
    result = await evaluated()
    assert [g.prompt.id for g in result.groups] == [p.id for p in PROMPTS]
    assert [len(g.samples) for g in result.groups] == [2] * 6
    assert result.mean == pytest.approx(sum(sum(g.rewards) for g in result.groups) / 12)
    assert (result.name, result.n, result.failed) == ("held_out", 6, 0)


async def test_failed_samples_are_counted_and_not_worth_zero():
    def fails_on_prompt_0(sample):
        if sample.prompt_id == "0":
            raise RuntimeError("judge is down")
        return 1.0

    result = await evaluated(reward=fails_on_prompt_0)
    assert (result.mean, result.n, result.failed) == (1.0, 5, 2)


async def test_progress_is_told_prompt_by_prompt():
    told = []
    await evaluated(told=lambda done, of: told.append((done, of)))
    assert told == [(i, 6) for i in range(1, 7)]


async def test_no_prompts_are_no_error():
    result = await evaluated(prompts=[])
    assert (result.n, result.failed) == (0, 0)
    assert math.isnan(result.mean)


async def test_broken_engine_ends_the_evaluation():
    class Broken:
        async def generate(self, request):
            await asyncio.sleep(0)
            raise ZeroDivisionError

    with pytest.raises(BaseExceptionGroup) as caught:
        await evaluated(seed_of=player_of(Broken()))
    assert caught.group_contains(ZeroDivisionError)


def summary(*groups, samples_per_prompt=2, **keys):
    section = SECTION.model_copy(update={"samples_per_prompt": samples_per_prompt, **keys})
    return summarise(section, [rewarded(rewards) for rewards in groups])


def test_error_of_the_mean_is_over_prompts():
    # means per prompt 0.5, 1, 0: deviation 0.5, over the root of three prompts
    result = summary([0, 1], [1, 1], [0, 0])
    assert (result.mean, result.n) == (0.5, 3)
    assert result.stderr == pytest.approx(0.5 / math.sqrt(3))


def test_none_among_rewards_neither_crashes_nor_shrinks_in_silence():  # miles#1706, prime-rl#3182, slime#2157
    result = summary([1, None], [0, 0], [None, None])
    assert result.mean == pytest.approx(1 / 3)
    assert (result.n, result.samples, result.failed) == (2, 6, 3)
    assert result.stderr == pytest.approx(math.sqrt(0.5) / math.sqrt(2))
    told = result.as_json()
    assert (told["n"], told["prompts"], told["samples"], told["failed"]) == (2, 3, 6, 3)


def test_a_prompt_with_fewer_rewards_than_k_is_left_out_of_pass_at_k_and_counted():
    result = summary([1, None], [0, 1], [None, None])
    assert result.pass_at == {1: 0.75, 2: 1.0}
    assert result.left_out == {1: 1, 2: 2}
    assert result.as_json()["pass_left_out_2"] == 2


def test_a_sample_passes_from_the_threshold_on():  # slime: only a reward of exactly 1.0, never 0.99
    assert summary([0.99, 0.0]).pass_at[1] == 0
    assert summary([0.99, 0.0], pass_threshold=0.9).pass_at[1] == 0.5


def test_samples_of_one_trajectory_are_one_draw():
    fanned = rewarded([1.0, 1.0, 1.0, 0.0])
    for sample in fanned.samples[:3]:
        sample.trajectory_id = 0
    result = summarise(SECTION, [fanned])
    assert (result.mean, result.samples, result.pass_at[1]) == (0.5, 2, 0.5)


def test_truncated_share_and_length_are_of_the_samples_that_did_not_fail():
    group = rewarded([1.0, 0.0, None])
    for sample, length in zip(group.samples, (3, 5, 1), strict=True):
        sample.sequence = Tokens.drawn([5] * length, [-1.0] * length, [0] * length)
    group.samples[1].status = Status.TRUNCATED
    result = summarise(SECTION, [group])
    assert (result.truncated_share, result.response_tokens) == (0.5, 4.0)


def test_what_so_few_cannot_tell_is_null():
    for groups, mean, n, failed in (
        ([], None, 0, 0),
        ([[None, None]], None, 0, 2),
        ([[1.0, 0.5]], 0.75, 1, 0),
    ):
        told = json.loads(json.dumps(summary(*groups).as_json(), allow_nan=False))
        found = {name: told[name] for name in ("mean", "stderr", "low", "high", "interval", "n", "failed")}
        unknown = {"stderr": None, "low": None, "high": None, "interval": None}
        assert found == {"mean": mean, **unknown, "n": n, "failed": failed}, groups


def test_every_number_of_an_evaluation_is_declared():
    numbers = {name for name, value in summary([1, None]).as_json().items() if not isinstance(value, str)}
    assert [name for name in numbers - {"interval"} if declared(f"eval/x/{name}") is None] == []


async def test_held_out_prompts_are_never_shuffled_and_each_is_asked_once(tmp_path):  # verl#423, AReaL#356
    lines = [json.dumps({"prompt": f"question {i}", "label": "a"}) for i in range(6)]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines) + "\n")
    section = SECTION.model_copy(update={"source": None, "n": None, "files": [str(tmp_path / "rows.jsonl")]})
    prompts = open_eval_set(section, Prompts(shuffle=True))
    engine = Noise()
    result = await evaluated(seed_of=player_of(engine, reward=first_letter), prompts=prompts)
    assert [group.prompt.messages for group in result.groups] == [f"question {i}" for i in range(6)]
    assert len({request.id for request in engine.requests}) == len(engine.requests) == 12


async def test_two_prompts_of_the_same_text_are_evaluated_as_two(tmp_path):  # verl#3280
    (tmp_path / "rows.jsonl").write_text("".join(f'{{"prompt": "a", "label": {n}}}\n' for n in (0, 1)))
    section = SECTION.model_copy(update={"source": None, "n": None, "files": [str(tmp_path / "rows.jsonl")]})
    result = await evaluated(
        reward=lambda sample: float(sample.label), prompts=open_eval_set(section, Prompts()), section=section
    )
    assert [(group.prompt.label, group.rewards) for group in result.groups] == [(0, [0, 0]), (1, [1, 1])]
    assert (result.n, result.mean, result.pass_at[1], result.pass_at[2]) == (2, 0.5, 0.5, 0.5)
    assert result.stderr == pytest.approx(0.5)


async def test_a_prompt_of_small_budget_leaves_the_others_theirs():  # slime: one dict is shared by all
    engine = Noise()
    small = Prompt(id="small", messages="a", label="a", metadata={"max_response_tokens": 3})
    await evaluated(seed_of=player_of(engine), prompts=[small, *PROMPTS[:2]])
    assert [request.sampling.max_tokens for request in engine.requests] == [3, 3, 8, 8, 8, 8]
    assert SAMPLING.max_tokens == 8


async def test_each_data_set_has_its_own_stop_texts():  # slime#2242: a data set's own `stop` was ignored
    sections = [EvalSet(name="a", source="x", n=1, stop=["\n"]), EvalSet(name="b", source="x", n=1)]
    a, b = (eval_sampling(section, Rollout(stop=["END"], top_p=0.9)) for section in sections)
    assert (a.stop, b.stop) == (("\n",), ("END",))
    assert (a.top_p, a.temperature) == (0.9, 0.0)


@pytest.mark.parametrize("key", ["temperture", "min_new_tokens"])
def test_a_key_that_a_data_set_does_not_have_is_refused(key, tmp_path):  # slime#2242
    run = tmp_path / "run.toml"
    run.write_text(f'model = "tiny"\n[[eval.datasets]]\nname = "a"\n{key} = 1\n')
    with pytest.raises(ConfigError, match=rf"run.toml:4: eval.datasets.0.{key} is unknown"):
        load_config([run])
