"""What every benchmark needs: a quiet machine, sides that take turns, the machine's own peak, the workload.

A side is a program of `peers/` in a process of its own, so that its peak memory is its own: see
`peers/serving.py`.
"""

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import quiet
import torch

ROOT = Path(__file__).parents[1]
OUR_PYTHON = ROOT / ".venv" / "bin" / "python"
PEERS = ROOT / "benchmarks" / "peers"
VLLM_PYTHON = ROOT / ".venv-vllm" / "bin" / "python"
TRL_PYTHON = ROOT / ".venv-trl" / "bin" / "python"
MODEL = Path(os.environ.get("STROP_HOME") or Path.home() / ".cache" / "strop") / "models" / "smollm2-135m"


SHAPES = ((512, 2048, 2048), (1024, 1024, 1024), (512, 576, 1536))
"""Rows, inputs, outputs: what fits the caches of a core, and a product of SmolLM2's."""


def peak_gflops(dtype: torch.dtype = torch.float32, repeats: int = 10) -> float:
    """The fastest of several products of each of several shapes.

    Weights lie as layers keep them. Where a processor has no bfloat16 products, those of other layouts take
    torch's loop over scalars, which is twenty times as slow: measured by it, every program is at its bound.
    """
    best = 0.0
    for rows, inputs, outputs in SHAPES:
        x, weight = torch.randn(rows, inputs).to(dtype), torch.randn(outputs, inputs).to(dtype)
        for _ in range(repeats):
            began = time.perf_counter()
            torch.nn.functional.linear(x, weight)
            best = max(best, 2 * rows * inputs * outputs / (time.perf_counter() - began) / 1e9)
    return best


def has_bfloat16() -> bool:
    """Whether this machine multiplies bfloat16 itself. Where not, it is widened on the way, several times as
    slowly as float32, and work in it has to be cut down to end in minutes; `details` say so."""
    return peak_gflops(torch.bfloat16, 1) > peak_gflops() / 2


def seconds(work: Callable[[], object]) -> float:
    """Of one call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def interleaved(sides: Mapping[str, Callable[[], float]], repeats: int) -> dict[str, list[float]]:
    """What each side returns, its seconds: A B A B …, so that a slow minute of the machine meets both."""
    took: dict[str, list[float]] = {name: [] for name in sides}
    for repeat in range(repeats):
        for name, side in sides.items():
            took[name].append(side())
            say(f"  {repeat + 1}/{repeats} {name}: {took[name][-1]:.1f}")
    return took


def ratio_of(slow: list[float], fast: list[float]) -> float:
    """The median of the ratios of neighbours in time."""
    return median(a / b for a, b in zip(slow, fast, strict=True))


def say(line: str) -> None:
    """Progress, on stderr: stdout carries results."""
    os.write(2, f"{line}\n".encode())


@contextmanager
def watched() -> Iterator[dict[str, Any]]:
    """Yields details of the machine; at the end, whether it was quiet. Sides must be loaded, and waiting."""
    found = machine()
    with quiet.watched() as seen:
        yield found
    found |= seen


def machine() -> dict[str, Any]:
    """What the figures hold for."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    cpu = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown")
    isa = torch.backends.cpu.get_cpu_capability()
    return {"cpu": cpu, "isa": isa, "cores": os.cpu_count(), "load": round(os.getloadavg()[0], 2)}


class Side:
    """A program that is loaded once and then runs on request; a context manager."""

    def __init__(self, python: Path, program: str, threads: int = 2, **settings: Any) -> None:
        environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
        if program.startswith("strop"):
            environment |= {"OMP_WAIT_POLICY": "PASSIVE"}  # as the command sets it; peers wait as they like
        command = [str(python), str(PEERS / f"{program}.py"), json.dumps({"threads": threads, **settings})]
        self._name = program
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.loaded = self._answer()

    def __enter__(self) -> "Side":
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __call__(self, **work: Any) -> dict[str, Any]:
        """Its answer: `seconds`, `peak_gib`, and what else it counts."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(work) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self._name} ended with {self._process.wait()}; what it said is above")
        return dict(json.loads(line))


def gsm8k_like(num_prompts: int, samples: int, *, cap: int = 256, seed: int = 0) -> dict[str, Any]:
    """Work for an engine: `prompts` as ids (GSM8K's own where STROP_DATA has them, else random ids of about
    110), and `lengths` of their responses, log-normal with σ = 1 and mean 64 before the cap."""
    rng = np.random.default_rng(seed)
    lengths = np.clip(rng.lognormal(np.log(64) - 0.5, 1.0, (num_prompts, samples)), 1, cap).astype(int)
    prompts = _gsm8k(num_prompts)
    source = "GSM8K" if prompts else "random ids"
    if not prompts:
        sizes = np.clip(rng.normal(110, 25, num_prompts), 50, 200).astype(int)
        prompts = [rng.integers(0, 40_000, n).tolist() for n in sizes]
    return {"prompts": prompts, "lengths": lengths.tolist(), "cap": cap, "source": source}


def shortened(work: dict[str, Any], by: int) -> dict[str, Any]:
    """The same prompts; responses of a part of their lengths, and of the cap."""
    lengths = [[max(1, n // by) for n in ns] for ns in work["lengths"]]
    return {**work, "lengths": lengths, "cap": work["cap"] // by}


WARM_UP = {"prompts": [list(range(100, 132))] * 2, "lengths": [[3, 3], [3, 3]], "cap": 4}
"""Work for an engine that is not counted: first touches of memory, and what libraries put off."""


def _gsm8k(num: int) -> list[list[int]]:
    rows = Path(os.environ.get("STROP_DATA") or "/nowhere") / "gsm8k" / "train.jsonl"
    if not rows.is_file():
        return []
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    questions = [json.loads(line)["question"] for line in rows.read_text().splitlines()[:num]]
    return [
        tokenizer.apply_chat_template(
            [{"role": "user", "content": q}], add_generation_prompt=True, return_dict=False
        )
        for q in questions
    ]


def line_of(name: str, ratio: float, median_of: int, **details: Any) -> dict[str, Any]:
    """One line of results."""
    return {"bench": name, "ratio": round(ratio, 3), "median_of": median_of, "details": details}


def print_lines(lines: Iterable[dict[str, Any]]) -> None:
    """As `python -m benchmarks` reads them, each as it comes: what ends early has given some."""
    for line in lines:
        print(json.dumps(line), flush=True)
