"""What the benchmarks reckon: who computed, which static batch is best, how time grows with work."""

import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


def script(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module(name)


def test_what_a_child_computes_is_not_what_others_compute(monkeypatch):
    quiet = script("quiet", monkeypatch)
    before = quiet._cpu()
    burn = "import time\nwhile time.process_time() < 0.2: pass"
    subprocess.run([sys.executable, "-S", "-c", burn], check=True)
    assert quiet._cpu().ours - before.ours >= 18


def work(num_prompts: int) -> dict[str, object]:
    return {
        "prompts": [[p] for p in range(num_prompts)],
        "lengths": [[p + 1] * 8 for p in range(num_prompts)],
    }


def test_parts_are_whole_batches_from_all_over_and_share_none(monkeypatch):
    bench = script("engine_vs_generate", monkeypatch)
    parts = bench.parts(work(64), 16)
    first = [[p for (p,) in part["prompts"]][:4] for part in parts]
    assert first == [[0, 1, 36, 37], [2, 3, 38, 39], [4, 5, 40, 41]]
    prompts = [p for part in parts for (p,) in part["prompts"]]
    assert len(prompts) == len(set(prompts)) == 12
    assert all(n == [p + 1] * 8 for q in parts for (p,), n in zip(q["prompts"], q["lengths"], strict=True))


def test_fewer_batches_than_parts_are_all_done_in_every_part(monkeypatch):
    bench = script("engine_vs_generate", monkeypatch)
    assert [part["prompts"] for part in bench.parts(work(64), 256)] == [work(64)["prompts"]] * 3


@pytest.mark.parametrize("best", [8, 16, 64, 512])
def test_the_best_static_batch_is_found_from_the_middle(best, monkeypatch):
    bench = script("engine_vs_generate", monkeypatch)

    def cost(rows: int) -> object:
        apart = abs(bench.ROWS.index(rows) - bench.ROWS.index(best))
        return bench.Cost(rows, prompt_s=(1 + apart) * rows, step_s=0)

    found = bench.tried(cost, work(64))
    assert min(found.values(), key=lambda cost: cost(work(64))).rows == best


def test_time_that_is_quadratic_in_work_has_an_exponent_of_two(monkeypatch):
    scaling = script("scaling", monkeypatch)
    sizes = [scaling.Size().along(axis, times) for axis in scaling.AXES for times in scaling.TIMES]

    def flops(size: object) -> float:
        return size.groups * (size.prompt + 8 * size.response)

    grown = scaling.growth(flops, {size: flops(size) ** 2 for size in sizes})
    assert [axis["exponent"] for axis in grown.values()] == pytest.approx([2, 2, 2])
    assert [axis["last"] for axis in grown.values()] == pytest.approx([2, 2, 2])
    assert grown["samples"]["work"] == pytest.approx(1)


def test_gradients_that_are_not_a_number_are_not_equal(monkeypatch):
    bench = script("train_vs_padded", monkeypatch)
    known = {"a": torch.ones(2), "b": torch.ones(2)}
    assert bench._equal(known, known) == 0
    with pytest.raises(SystemExit, match="differ by nan"):
        bench._equal(known, {**known, "b": torch.tensor([1.0, torch.nan])})
