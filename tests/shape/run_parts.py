"""Tiny real runs, and what each says, part by part."""

import hashlib
import io
import json
import shlex
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

from strop.cli.main import main
from strop.store.reader import RunReader
from strop.telemetry.metrics import is_timing

RUN = """model = "./tiny"
[prompts]
{prompts}
[rollout]
batch_size = 2
samples_per_prompt = 2
max_response_tokens = 8
[reward]
fn = "mine.py:length"
[train.optim]
lr = 1e-3
[loop]
steps = 2
[runtime]
threads = 1
[[eval.datasets]]
name = "dev"
files = ["data.jsonl"]
n = 2
"""
ROWS = """model = "./tiny"
[algo]
type = "{type}"
[prompts]
files = ["rows.jsonl"]
[rollout]
batch_size = 2
[train.optim]
lr = 1e-2
[loop]
steps = 2
[runtime]
threads = 1
[[eval.datasets]]
name = "dev"
files = ["rows.jsonl"]
n = 2
"""
MIXTURE = """
[[prompts.mixture]]
name = "one"
files = ["data.jsonl"]
[[prompts.mixture]]
name = "two"
files = ["other.jsonl"]
"""
ROW = {"prompt": "ab", "label": "b", "question": "to be", "answer": "x", "extra": {"a": 1}}
MINE = """
import asyncio
import numpy as np
from collections import Counter
from itertools import count
from strop import Sample, Scores, Status, Tokens
from strop.envs.base import Observation, Step

CALLS, SEEN, RUNNING = count(), Counter(), Counter()

def length(sample): return float(sum(sample.tokens) % 7)
def half(sample): return sample.index % 2 / 2
def table(sample): return {"one": float(sample.index), "other": -float(sample.index)}
def either(given): return [float(s.index) for s in given] if not isinstance(given, Sample) else 0.5
async def slow(sample):
    await asyncio.sleep(0.1)
    return float(sample.index)
def at_second(sample):
    SEEN[sample.index, sample.prompt_id] += 1
    if SEEN[sample.index, sample.prompt_id] % 2: raise RuntimeError("not yet")
    return float(sample.index)
async def at_once(sample):
    RUNNING["now"] += 1
    found = RUNNING["now"]
    await asyncio.sleep(0.02)
    RUNNING["now"] -= 1
    return float(found)
def every_second(group): return group.id % 2 == 0
def none(group): return False
def mark(sample): sample.metadata["marked"] = True
def task(rng, size=4): return {"prompt": "".join(rng.choices("abc", k=size)), "label": "a"}
async def three_tokens(prompt, ctx):
    ids = ctx.renderer.prompt(prompt)
    made = await ctx.complete(ids, max_tokens=3)
    ctx.sample.sequence = joined(ids, made)
    ctx.sample.prompt_length = len(ids)
    ctx.sample.status = Status.COMPLETED
    return [ctx.sample]
def joined(ids, made):
    p, r = len(ids), len(made.ids)
    return Tokens(
        np.concatenate([np.asarray(ids, np.int32), made.ids]),
        np.arange(p + r) >= p,
        np.arange(p + r) >= p,
        np.concatenate([np.full(p, np.nan, np.float32), made.logp]),
        np.concatenate([np.full(p, -1, np.int32), made.versions]),
    )

class Again:
    def __init__(self, word="no"): self.word = word
    async def start(self, prompt): return Observation()
    async def step(self, reply):
        return Step(Observation(({"role": "user", "content": self.word},)), done=False)
    async def close(self): ...

class Slow(Again):
    async def start(self, prompt):
        await asyncio.sleep(0.1)
        return Observation()
    async def step(self, reply): return Step(Observation(), done=True)
"""


def given_row(number: int) -> dict[str, Any]:
    """A row for every kind of data that holds what is trained."""
    says = ("user", "assistant") * 2
    return {
        "prompt": f"{number}+1",
        "completion": str(number + 1),
        "answer": "a" * number + "b",
        "label": number % 2 == 0,
        "chosen": str(number + 1),
        "rejected": str(number),
        "responses": [str(number + 1), str(number)],
        "others": [str(number), "z"],
        "metadata": {"margin": 0.5},
        "better": "a" * number + "c",
        "worse": "d",
        "talk": [{"role": role, "content": f"{place}{number}"} for place, role in enumerate(says)],
    }


def lay_out(place: Path, make_tiny: Any) -> None:
    """Data, functions and models, in `place`."""
    rows = [ROW | {"prompt": text, "question": text * 2} for text in ("ab", "cd", "efgh", "ijkl", "mn")]
    others = [ROW | {"prompt": text, "functions": [{"name": "f"}]} for text in ("zy", "xw", "vu")]
    third = [ROW | {"prompt": "third"}]
    for name, table in {
        "data": [row | {"functions": [{"name": "f"}]} for row in rows],
        "other": others,
        "third": third,
    }.items():
        (place / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table))
    (place / "bad.jsonl").write_text('{"prompt": "ab", "label": "b"}\n{"prompt": 3}\n')
    (place / "mine.py").write_text(MINE)
    (place / "run.toml").write_text(RUN.format(prompts='files = ["data.jsonl"]'))
    (place / "mixture.toml").write_text(RUN.format(prompts="") + MIXTURE)
    made = [given_row(place) for place in range(6)]
    (place / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made))
    for name, kind in {"texts": "sft", "pairs": "dpo", "marked": "kto"}.items():
        (place / f"{name}.toml").write_text(ROWS.format(type=kind))
    make_tiny(place / "tiny", seed=1)
    make_tiny(place / "other", seed=2)


@cache
def parts(file: str, flags: str) -> dict[str, Any]:
    """What `strop train FILE FLAGS` in the working directory says."""
    wanted = Path(f"run-{hashlib.sha256((file + flags).encode()).hexdigest()[:12]}")
    words = shlex.split(flags)
    own = words[words.index("--store.dir") + 1] if "--store.dir" in words else None
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(["train", file, *words, *([] if own else ["--store.dir", str(wanted)])])
    said: dict[str, Any] = {"code": code, "error": err.getvalue(), "directory": own}
    if code != 0:
        return said
    printed = out.getvalue().splitlines()
    said["output"] = printed[:1], sum("┌" in line for line in printed)
    return said | _of_run(Path(own) if own else wanted)


def _of_run(path: Path) -> dict[str, Any]:
    run = RunReader(path)
    samples = [sample for step in run.sample_steps() for sample in run.samples(step)]
    evals = [(name, step) for name in run.eval_sets() for step in run.eval_steps(name)]
    held_out = [sample for name, step in evals for sample in run.eval_samples(name, step)]
    weights = path / f"checkpoints/step-{len(run.metrics())}/model.safetensors"
    metrics = [{name: v for name, v in row.items() if not is_timing(name)} for row in run.metrics()]
    return {
        "prompts": sorted({str(sample.prompt) for sample in samples}),
        "labels": [sample.label for sample in samples],
        "metadata": [sample.metadata for sample in samples],
        "tokens": [sample.tokens for sample in samples],
        "behavior": [sample.rollout_log_probs for sample in samples],
        "rewards": [sample.reward for sample in samples],
        "advantages": [a.tolist() for step in run.sample_steps() for a in run.advantages(step).values()],
        "ledger": [(entry.event, entry.group) for entry in run.ledger()],
        "evals": [{k: v for k, v in row.items() if not is_timing(k)} for row in run.evals()],
        "eval samples": [(s.tokens, s.label, s.reward) for s in held_out],
        "checkpoints": sorted(found.name for found in (path / "checkpoints").iterdir()),
        "weights": hashlib.sha256(weights.read_bytes()).hexdigest(),
        "plan": run.config()["plan"],
        "files": sorted({found.name.split(".")[0] for found in path.rglob("*")}),
        **{name: [row.get(name) for row in metrics] for name in {n for row in metrics for n in row}},
    }
