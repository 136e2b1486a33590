"""`strop doctor mine.py:name`: which seam it is, and every way of breaking the seam's contract."""

import pytest

from strop.cli.main import main
from strop.doctor.functions import function_findings
from strop.errors import InputError, PluginError
from strop.finding import Level

pytestmark = pytest.mark.slow

MINE = """
import asyncio, itertools, random
from strop.envs.base import Observation, Step

def good(sample): return float(sample.response == str(sample.label))
def scaled(sample, *, scale): return scale * len(sample.response)
def half_broken(sample): return 1 / len(sample.response)
def nothing(sample): return None
def constant(sample): return 1.0
def changing(sample): sample.metadata["seen"] = 1; return float(len(sample.response))
counter = itertools.count()
def drifting(sample): return float(next(counter))
async def hanging(sample): await asyncio.Event().wait()
def spread(samples): return [float(len(s.response)) for s in samples]

def keep_all(group): return True
def keep_none(group): return False
def keep_text(group): return "yes"

async def made(prompt, ctx):
    ids = ctx.renderer.prompt(prompt)
    ctx.sample.sequence = type(ctx.sample.sequence).context(ids); ctx.sample.prompt_length = len(ids)
    out = await ctx.complete(ids)
    ctx.sample.append_response_tokens(tokens=out.ids.tolist(), log_probs=out.logp.tolist(),
                                      meta_info={"finish_reason": {"type": out.finish}})
    return [ctx.sample]
async def forgets(prompt, ctx): return []
async def invents(prompt, ctx):
    ids = ctx.renderer.prompt(prompt)
    await ctx.complete([1, 2, 3])
    ctx.sample.sequence = type(ctx.sample.sequence).context(ids); ctx.sample.prompt_length = len(ids)
    ctx.sample.append_response_tokens(tokens=[7], trainable=False)
    ctx.sample.status = type(ctx.sample.status).COMPLETED
    return [ctx.sample]

def tasks(rng): return {"prompt": str(rng.random()), "label": 1}
def one_task(rng): return {"prompt": "a"}
def global_tasks(rng): random.random(); return {"prompt": str(rng.random())}
def odd_tasks(rng): return {"prompt": "a", "label": {1, 2}}

class Env:
    async def start(self, prompt): return Observation()
    async def step(self, reply): return Step(Observation(), done=True, reward=0.5)
    async def close(self): pass
class Endless(Env):
    async def step(self, reply): return Step(Observation(({"role": "user", "content": "on"},)), done=False)
class Raises(Env):
    async def step(self, reply): raise KeyError("answer")
class Odd(Env):
    async def step(self, reply): return Step(Observation(({"role": "critic", "content": "on"},)), done=True)

async def slime(args, sample): return 1.0
"""


@pytest.fixture
def findings(tmp_path):
    """What is found of a function in `MINE`."""
    (tmp_path / "mine.py").write_text(MINE)

    def found(name, *, seam=None, options=None, label=None):
        spec = f"{tmp_path}/mine.py:{name}"
        return list(function_findings(spec, seam=seam, options=options, label=label))

    return found


@pytest.mark.parametrize(
    ("name", "seam"),
    [
        ("good", "reward"), ("spread", "group_reward"), ("keep_all", "keep"), ("made", "generate"),
        ("tasks", "prompts"), ("Env", "env"),
    ],
)  # fmt: skip
def test_a_good_function_is_told_its_seam_and_is_ok(findings, name, seam):
    found = findings(name)
    assert f": {seam};" in found[0].text
    assert {finding.level for finding in found} == {Level.OK}


@pytest.mark.parametrize(
    ("name", "level", "about", "text"),
    [
        ("half_broken", "fail", "any response", "'', label 42: reward"),
        ("nothing", "fail", "any response", "expected a finite number"),
        ("constant", "warn", "the label", "every response is worth 1"),
        ("changing", "warn", "the sample", "is changed"),
        ("drifting", "warn", "twice", "is worth 0, then 1"),
        ("scaled", "fail", "reward", "scaled needs 'scale'"),
        ("keep_none", "warn", "kept", "0 of 7"),
        ("keep_text", "fail", "any group", "expected a bool or a Drop, got 'yes'"),
        ("forgets", "fail", "samples", "expected [ctx.sample]"),
        ("invents", "fail", "mask", "no token is trained"),
        ("invents", "warn", "exact tokens", "4 of 4 requests continue ids that are on no sample"),
        ("one_task", "warn", "tasks", "1 distinct"),
        ("global_tasks", "fail", "random", "global random state"),
        ("odd_tasks", "fail", "tasks", "cannot be stored"),
        ("Endless", "warn", "episode", "no end after 10"),
        ("Raises", "fail", "episode", "KeyError"),
        ("Odd", "fail", "messages", "got 'critic'"),
    ],
)
def test_a_broken_contract_is_named(findings, name, level, about, text):
    found = [finding for finding in findings(name) if (finding.level, finding.about) == (level, about)]
    assert text in found[0].text


@pytest.mark.parametrize(("name", "about"), [("nothing", "any response"), ("drifting", "twice")])
def test_one_fault_of_every_response_is_one_line(findings, name, about):
    (found,) = [finding for finding in findings(name) if finding.about == about and finding.level != Level.OK]
    assert found.text.endswith("; 8 more alike")


def test_a_reward_that_hangs_is_not_waited_for_nine_times(findings, monkeypatch):
    monkeypatch.setattr("strop.doctor.seams_that_judge._TIMEOUT_S", 0.05)
    first, rest = findings("hanging")[1:]
    assert "no answer after 0.05 s" in first.text
    assert (rest.level, rest.text) == (Level.FAIL, "8 more not tried: a call took 0.05 s")


def test_options_and_label_reach_the_function(findings):
    found = findings("scaled", options="{ scale = 2.0 }", label='"blue"')
    assert "as the response is worth 8" in found[-1].text


def test_the_seam_may_be_named(findings):
    assert findings("good", seam="keep")[1].level is Level.FAIL


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"name": "goood"}, "has no 'goood'; did you mean 'good'?"),
        ({"name": "good", "seam": "rewards"}, "--as rewards: no such seam; did you mean 'reward'?"),
        ({"name": "good", "options": "scale = 2"}, "--options: not a table of TOML"),
        ({"name": "good", "options": "2"}, "--options: expected a table"),
        ({"name": "good", "label": "blue"}, "--label: not JSON"),
        ({"name": "slime"}, "takes `args` first, as functions written for slime do"),
    ],
)
def test_a_wrong_question_is_one_line(findings, arguments, line):
    with pytest.raises((InputError, PluginError)) as caught:
        findings(**arguments)
    assert line in str(caught.value)


def test_the_exit_code_is_that_of_the_worst_finding(findings, tmp_path, capsys):
    findings("good")
    assert main(["doctor", f"{tmp_path}/mine.py:good"]) == 0
    assert main(["doctor", f"{tmp_path}/mine.py:nothing"]) == 1
    assert capsys.readouterr().out.rstrip().endswith("fail: see above")
