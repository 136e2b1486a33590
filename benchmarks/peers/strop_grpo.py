"""The loop of `strop train` as a side: between two steps it waits until another is asked for."""

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any, TextIO

import digits
from serving import answer, requests, settings, take_stdout

from strop.config.tree import Config
from strop.loop import train
from strop.preflight import prepare
from strop.run import Run
from strop.store.run_dir import RunDirectory
from strop.telemetry.base import Silent


class Held(Silent):
    """A sink that blocks the run where a step has been recorded: no rollout has begun, and none can."""

    def __init__(self, to: TextIO) -> None:
        self._to, self._work, self._began = to, requests(), 0.0

    def wait(self) -> None:
        """Raises SystemExit when nothing more is wanted."""
        if next(self._work, None) is None:
            raise SystemExit
        self._began = time.perf_counter()

    def step(self, record: dict[str, Any]) -> None:
        """Answer with the step, then wait."""
        answer(
            self._to,
            seconds=time.perf_counter() - self._began,
            tokens=round(record["rollout/sampled_tokens"]),
            longest=round(record["rollout/response_tokens_max"]),
            prompt_tokens=round(record["rollout/prompt_tokens"] * record["rollout/samples"]),
            spread=record["reward/group_std"],
        )
        self.wait()


def config(given: dict[str, Any]) -> Config:
    """GRPO as `trl_grpo.py` has it; what is not named is the default."""
    return Config.model_validate(
        {
            "model": given["model"],
            "prompts": {"files": [given["rows"]], "shuffle": False},
            "rollout": {
                "batch_size": given["prompts"],
                "samples_per_prompt": given["samples"],
                "max_response_tokens": given["cap"],
            },
            "reward": {"fn": f"{digits.__file__}:of_sample"},
            "engine": {"dtype": given["dtype"]},
            "algo": {"clip_high": 0.2},
            "train": {"dtype": given["dtype"], "optim": {"lr": given["lr"], "betas": (0.9, 0.999)}},
            "runtime": {"threads": given["threads"]},
            "loop": {"steps": given["steps"]},
        }
    )


def main() -> None:
    """`threads`, `model`, `dtype`, `rows`, `prompts`, `samples`, `cap`, `lr`, `steps`."""
    to, given = take_stdout(), settings()
    held = Held(to)
    with tempfile.TemporaryDirectory() as scratch:
        directory = RunDirectory.create(Path(scratch) / "run", "bench", config={})
        with directory:
            run = Run(prepare(config(given)), directory, held)
            answer(to)
            try:
                held.wait()
                asyncio.run(train(run))
            finally:
                run.close()


if __name__ == "__main__":
    main()
