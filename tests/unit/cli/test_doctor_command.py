"""`strop doctor RUN.toml`: what it finds in a run before it begins, and that it leaves nothing behind."""

import json

import pytest

from strop.cli.main import main

pytestmark = pytest.mark.slow

MINE = """
import itertools
from strop.envs.base import Observation, Step

def right(sample): return float(sample.response.strip() == str(sample.label))
def length(sample): return float(len(sample.response))
def generous(sample): return 1.0
def nothing(sample): return None
counter = itertools.count()
def drifting(sample): return float(next(counter))
def beside_others(samples): return [len(s.response) / (len(samples) - 1) for s in samples]
def longest(samples): return [float(len(s.response)) for s in samples]

class Env:
    async def start(self, prompt): return Observation()
    async def step(self, reply): return Step(Observation(), done=True, reward=float(len(reply.text)))
    async def close(self): pass
class Raises(Env):
    async def step(self, reply): raise KeyError("answer")
"""
FLAGS = ["--loop.steps", "1", "--runtime.threads", "1", "--rollout.batch_size", "2"]
FLAGS += ["--rollout.samples_per_prompt", "2", "--rollout.max_response_tokens", "4"]


@pytest.fixture
def doctor(tiny_dir, tmp_path, monkeypatch, capsys):
    """`strop doctor` of a small run: exit code and lines."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    rows = [{"prompt": "ab", "label": "b"}, {"prompt": "abc", "label": "c"}, {"prompt": "ab", "label": "b"}]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def run(*flags):
        base = ["--model", str(tiny_dir), "--prompts.files", "data.jsonl", *FLAGS]
        code = main(["doctor", *base, "--n", "2", *flags])
        left = {path.name for path in tmp_path.iterdir()} - {"mine.py", "data.jsonl", "__pycache__"}
        assert left == set()
        return code, capsys.readouterr().out

    return run


def line(out, about):
    return [text for text in out.splitlines() if text[5:].startswith(about)]


def test_every_part_of_a_run_is_looked_at(doctor):
    code, out = doctor("--reward.fn", "mine.py:length")
    assert code == 0
    for about in ("model", "template", "prompts", "environment", "lengths", "rewards", "learning", "twice"):
        assert line(out, about), about
    assert "█" in out


def test_of_two_prompts_95_percent_are_up_to_the_longer(doctor):
    _, out = doctor("--reward.fn", "mine.py:length", "--eval-prompt-data", "dev", "data.jsonl@[0:2]")
    assert "2 prompts: 5–6 tokens, half up to 5, 95 % up to 6" in line(out, "eval dev")[0]


def test_rows_that_are_there_twice_and_held_out_rows_that_are_trained_on_are_warned_of(doctor):
    _, out = doctor("--reward.fn", "mine.py:length", "--eval-prompt-data", "dev", "data.jsonl@[0:2]")
    assert "1 prompts are there more than once" in out
    assert "2 of 2 held-out prompts are trained on" in out


def test_a_reward_without_differences_leaves_nothing_to_learn(doctor):
    code, out = doctor("--reward.fn", "mine.py:generous")
    assert code == 0
    assert "2 of 2 groups have equal rewards: nothing to learn; every sample is right already" in out


def test_tasks_that_nobody_solves_say_so(doctor):
    _, out = doctor("--reward.fn", "mine.py:right")
    assert "nothing to learn; no sample is right; make the tasks easier" in out


def test_a_reward_that_pays_for_nothing_is_warned_of(doctor):
    _, out = doctor("--reward.fn", "mine.py:generous")
    assert [text[:4] for text in line(out, "empty response")] == ["warn"]
    _, out = doctor("--reward.fn", "mine.py:right")
    assert [text[:4].strip() for text in line(out, "empty response")] == ["ok"]
    assert "as the response is worth 1" in line(out, "the label")[0]


def test_a_reward_that_changes_its_mind_is_warned_of(doctor):
    _, out = doctor("--reward.fn", "mine.py:drifting")
    assert "4 of 4 samples were worth something else when scored again" in line(out, "twice")[0]


def test_a_reward_that_fails_ends_with_1(doctor):
    code, out = doctor("--reward.fn", "mine.py:nothing", "--reward.retries", "0")
    assert code == 1
    assert "4 of 4 samples failed; the first: reward " in out
    assert "mine.py:nothing: returned NoneType None" in out


def test_a_reward_of_whole_groups_is_tried_too(doctor):
    code, out = doctor("--reward.fn", "mine.py:longest", "--reward.group", "true")
    assert (code, "4 samples scored again are worth the same" in out) == (0, True)


def test_a_reward_that_compares_is_tried_on_made_up_responses_beside_one_another(doctor):
    code, out = doctor("--reward.fn", "mine.py:beside_others", "--reward.group", "true")
    assert code == 0
    assert "is worth 0.833 on average" in line(out, "prompt repeated")[0]


def test_ppo_is_not_told_that_equal_rewards_leave_nothing_to_learn(doctor):
    _, out = doctor("--reward.fn", "mine.py:generous", "--algo.type", "ppo")
    assert 'algo.advantage = "gae" learns from groups of equal rewards too' in line(out, "learning")[0]


def test_an_environment_is_played_with_an_empty_reply_and_the_label(doctor):
    code, out = doctor("--env.type", "mine.py:Env")
    assert code == 0
    assert "an empty reply: done after 1 replies, reward 0" in out
    assert "the label: done after 1 replies, reward 1" in out
    assert "may give it: not tried" in line(out, "reward ")[0]


def test_an_environment_that_raises_ends_with_1(doctor):
    code, out = doctor("--env.type", "mine.py:Raises")
    assert (code, "KeyError: 'answer'" in line(out, "environment")[0]) == (1, True)


def test_a_judge_within_the_run_is_asked_also_about_made_up_responses(doctor, tiny_dir):
    judge = f"{{ model = '{tiny_dir}', max_tokens = 4, cache_tokens = 4096 }}".replace("'", '"')
    code, out = doctor("--reward.fn", "judge", "--reward.options", judge, "--reward.retries", "0")
    assert code == 1
    assert "4 of 4 samples failed; the first: judge" in out
    assert ["cannot be scored: judge" in text for text in line(out, "empty response")] == [True]
