"""What every benchmark needs: a quiet machine, sides that take turns, the machine's own peak, the workload.

A side is a program of `peers/` in a process of its own, so that its peak memory is its own: see
`peers/serving.py`.
"""

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).parents[1]
OUR_PYTHON = ROOT / ".venv" / "bin" / "python"
PEERS = ROOT / "benchmarks" / "peers"
VLLM_PYTHON = ROOT / ".venv-vllm" / "bin" / "python"
TRL_PYTHON = ROOT / ".venv-trl" / "bin" / "python"
MODEL = Path(os.environ.get("STROP_HOME") or Path.home() / ".cache" / "strop") / "models" / "smollm2-135m"


def peak_gflops(dtype: torch.dtype = torch.float32, repeats: int = 10) -> float:
    """The fastest of several products of [512, 2048] and [2048, 2048]."""
    a, b = torch.randn(512, 2048).to(dtype), torch.randn(2048, 2048).to(dtype)
    best = float("inf")
    for _ in range(repeats):
        began = time.perf_counter()
        a @ b
        best = min(best, time.perf_counter() - began)
    return 2 * 512 * 2048 * 2048 / best / 1e9


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


@dataclass(frozen=True, slots=True)
class Cpu:
    """Jiffies since the machine started."""

    busy: int
    stolen: int
    total: int


def _cpu() -> Cpu:
    user, nice, system, idle, iowait, irq, softirq, steal = map(
        int, Path("/proc/stat").read_text().split()[1:9]
    )
    busy = user + nice + system + irq + softirq
    return Cpu(busy, steal, busy + idle + iowait + steal)


def _idle_use() -> float:
    """Share of the machine that is busy while this process and its sides wait: one that spins is seen."""
    before = _cpu()
    time.sleep(1)
    after = _cpu()
    return (after.busy + after.stolen - before.busy - before.stolen) / max(1, after.total - before.total)


@contextmanager
def watched() -> Iterator[dict[str, Any]]:
    """Yields details of the machine; `quiet` is filled in at the end. Sides must be loaded, and waiting."""
    found: dict[str, Any] = machine()
    before, start = _idle_use(), _cpu()
    yield found
    end = _cpu()
    stolen = (end.stolen - start.stolen) / max(1, end.total - start.total)
    others = max(before, _idle_use())
    found |= {"others_busy": round(others, 3), "stolen": round(stolen, 3)}
    found["quiet"] = others < 0.1 and stolen < 0.05


def machine() -> dict[str, Any]:
    """What the figures hold for."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    cpu = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown")
    isa = torch.backends.cpu.get_cpu_capability()
    return {"cpu": cpu, "isa": isa, "cores": os.cpu_count(), "load": round(os.getloadavg()[0], 2)}


class Side:
    """A program that is loaded once and then runs on request; a context manager."""

    def __init__(self, python: Path, program: str, threads: int = 2, **settings: Any) -> None:
        environment = os.environ | {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "PASSIVE"}
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


def print_lines(lines: list[dict[str, Any]]) -> None:
    """As `python -m benchmarks` reads them."""
    for line in lines:
        print(json.dumps(line), flush=True)
