"""Small run directories, written as a run writes them."""

import numpy as np

from strop.sample import Group, Prompt, Sample, Status, Tokens
from strop.store.run_dir import RunDirectory
from strop.store.samples import write_samples

CONFIG = {"values": {"model": "tiny", "loop": {"steps": 2, "seed": 0}, "train": {"optim": {"lr": 1e-6}}}}


def sample(index, prompt, response, *, reward=1.0, logp=-0.5):
    """One whose tokens are the bytes of its response."""
    drawn = Tokens.drawn(
        list(response.encode()), [logp] * len(response.encode()), [0] * len(response.encode())
    )
    return Sample(
        index=index,
        group_id=0,
        prompt_id=prompt,
        prompt=[{"role": "user", "content": f"question {prompt}"}],
        label="52",
        sequence=Tokens.context([1, 2]) + drawn,
        prompt_length=2,
        response=response,
        status=Status.COMPLETED,
        reward=reward,
        timing={"generate_s": 0.1 * index},
    )


def store(path, samples, advantages=None):
    groups = [Group(0, Prompt(id="p", messages="unused"), samples)]
    given = {
        s.index: np.full(s.response_length, (advantages or {})[s.index], np.float32)
        for s in samples
        if advantages and s.index in advantages
    }
    write_samples(path, groups, given)


def write_run(
    path, *, prompts=("p0", "p1"), weights=b"weights", change=None, status="finished", config=CONFIG
):
    """Two steps, one prompt each, two samples a prompt, and a held-out set at the start and the end."""
    with RunDirectory.create(path, "run", config=config) as run:
        for step, prompt in enumerate(prompts):
            pair = [
                sample(2 * step, prompt, f"wrong {step}", reward=0.0),
                sample(2 * step + 1, prompt, f"right {step}"),
            ]
            advantages = {2 * step: -0.7, 2 * step + 1: 0.7}
            record = {"step": step, "version": step, "reward/mean": 0.5, "time/rollout_s": np.random.rand()}
            if change is not None:
                change(step, record, pair, advantages)
            store(run.samples_path(step), pair, advantages)
            run.metrics.append(record)
        for done, answer in ((0, "before"), (2, "after")):
            held_out = [sample(i, f"h{i}", f"{answer} {i}", reward=float(done > 0)) for i in range(5)]
            store(run.eval_path("numbers", done), held_out)
            run.evals.append(
                {"dataset": "numbers", "step": done, "mean": float(done > 0), "n": 5, "time/eval_s": done / 7}
            )
        run.write_checkpoint(
            len(prompts), fill=lambda d: (d / "model.safetensors").write_bytes(weights), state={}, keep=1
        )
        if status:
            run.write_summary({"status": status, "steps": len(prompts), "wall_s": 12.3})
    return path
