"""From `strop train` to the first token and to the first update, against loading torch and the weights alone.

python benchmarks/startup.py. With files in the page cache, and without: each is then read from the disk. A
run is one prompt of two samples of one token, so that the way there is measured and not the work. Cold means
cold only while no other process has torch loaded.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

# No torch here, so not the harness either before all is measured: what a process has mapped stays in memory.
from quiet import watched

from strop.config.home import models_dir

NAME = "startup"
WANT = 0.5
"""All the rest of a start takes no longer than torch and the weights do."""
MINUTES = 5
REPEATS = 3
ROOT = Path(__file__).parents[1]
TASK = """
from pathlib import Path

def prompt(rng):
    return {"prompt": rng.choice("abc")}

def score(sample):
    Path(__file__).with_name("first_token").touch()
    return float(sample.index)
"""
RUN = """
model = "{model}"
prompts.source = "task.py:prompt"
rollout = {{ batch_size = 1, samples_per_prompt = 2, max_response_tokens = 1 }}
reward.fn = "task.py:score"
loop.steps = 2
store.dir = "run"
"""
LOAD = "import torch; from pathlib import Path; Path({weights!r}).read_bytes()"
LOAD_BOTH = "import transformers; " + LOAD


@dataclass(frozen=True, slots=True)
class Start:
    """Seconds from the command on."""

    first_token: float
    first_update: float
    peak_gib: float


def _environment() -> dict[str, str]:
    """A user's: compiled modules are kept."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}


def _started(model: Path) -> Start:
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        (place / "task.py").write_text(TASK)
        (place / "run.toml").write_text(RUN.format(model=model.name))
        began = time.perf_counter()
        command = [str(Path(sys.prefix) / "bin" / "strop"), "train", "run.toml"]
        process = subprocess.Popen(command, cwd=place, env=_environment(), stdout=subprocess.DEVNULL)
        try:
            token = _waited(place / "first_token", process) - began
            update = _waited(place / "run" / "metrics.jsonl", process) - began
            return Start(token, update, _peak_gib(process.pid))
        finally:
            process.kill()
            process.wait()


def _waited(file: Path, process: subprocess.Popen[bytes]) -> float:
    """When the file is there and, if it is a record, holds a line."""
    while not file.exists() or (file.suffix and not file.stat().st_size):
        if process.poll() is not None:
            raise SystemExit(f"strop train ended with {process.returncode} before {file.name} was there")
        time.sleep(0.002)
    return time.perf_counter()


def _peak_gib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**20


def _loaded(code: str, model: Path) -> float:
    began = time.perf_counter()
    weights = str(model / "model.safetensors")
    subprocess.run([sys.executable, "-c", code.format(weights=weights)], env=_environment(), check=True)
    return time.perf_counter() - began


def _files(model: Path) -> Iterator[Path]:
    """All that a start may read."""
    for folder in (model, ROOT / "strop", Path(sys.prefix), Path(os.__file__).parent, Path(sys.base_prefix)):
        yield from (path for path in folder.rglob("*") if path.is_file())


def _forget(files: list[Path]) -> None:
    """Take files out of the page cache; needs no privilege, and leaves what other processes have mapped."""
    os.sync()  # what is not written yet stays
    for path in files:
        try:
            handle = os.open(path, os.O_RDONLY)
        except OSError:
            continue
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)


def _measured(model: Path, *, cold: bool) -> dict[str, Any]:
    _started(model)  # modules are compiled, and the tiny model made, by whoever comes first
    files = list(_files(model)) if cold else []
    starts, alone, both = [], [], []
    with watched() as details:
        for _ in range(REPEATS):
            _forget(files)
            starts.append(_started(model))
            _forget(files)
            alone.append(_loaded(LOAD, model))
            _forget(files)
            both.append(_loaded(LOAD_BOTH, model))
    return details | {
        "ratio": median(a / s.first_token for a, s in zip(alone, starts, strict=True)),
        "model": model.name,
        "cache": "cold" if cold else "warm",
        "first_token_s": [s.first_token for s in starts],
        "first_update_s": [s.first_update for s in starts],
        "torch_and_weights_s": alone,
        "transformers_too_s": both,
        "peak_gib": median(s.peak_gib for s in starts),
    }


def bench() -> list[dict[str, Any]]:
    """The tiny model, and SmolLM2 where it is installed."""
    models = [models_dir() / name for name in ("tiny", "smollm2-135m")]
    found = [
        _measured(model, cold=cold)
        for model in models
        if model.is_dir() or model.name == "tiny"
        for cold in (False, True)
    ]
    from harness import line_of, machine

    return [line_of(NAME, line.pop("ratio"), REPEATS, **line, **machine()) for line in found]


if __name__ == "__main__":
    results = bench()
    from harness import print_lines

    print_lines(results)
