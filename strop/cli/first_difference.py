"""The first thing in which two runs that should be equal differ, in the order in which a run makes things."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strop.sample import Sample, Tokens
from strop.store.reader import RunReader
from strop.store.records import sample_to_json
from strop.store.samples import Advantages
from strop.telemetry.metrics import is_timing

_ABSENT = "absent"


def first_difference(a: RunReader, b: RunReader) -> str | None:
    """One line that names it with both values; None when the runs are equal, times and speeds aside.

    Looked at in order: that both finished, each step's metrics and samples, each evaluation, the weights.
    """
    return next(_differences(a, b), None)


def _differences(a: RunReader, b: RunReader) -> Iterator[str]:
    yield from _endings(a, b)
    yield from _steps(a, b)
    yield from _evals(a, b)
    yield from _weights(a, b)


def _endings(a: RunReader, b: RunReader) -> Iterator[str]:
    for run in (a, b):
        summary = run.summary()
        status = "unfinished" if summary is None else summary["status"]
        if status != "finished":
            yield f"{run.path}: is {status}, expected finished"


def _steps(a: RunReader, b: RunReader) -> Iterator[str]:
    left, right = ({row["step"]: row for row in run.metrics()} for run in (a, b))
    stored = [set(run.sample_steps()) for run in (a, b)]
    for step in sorted(left.keys() | right.keys()):
        if step not in left or step not in right:
            yield f"step {step}: is only in {(a if step in left else b).path}"
            return
        yield from _records(f"step {step}", left[step], right[step])
        if step in stored[0] or step in stored[1]:
            yield from _samples(
                f"step {step}",
                (a.samples(step), a.advantages(step)),
                (b.samples(step), b.advantages(step)),
            )


def _records(where: str, left: Mapping[str, Any], right: Mapping[str, Any]) -> Iterator[str]:
    for name in [*left, *(name for name in right if name not in left)]:
        x, y = left.get(name, _ABSENT), right.get(name, _ABSENT)
        if not is_timing(name) and x != y:
            yield f"{where}: {name} = {x} and {y}"


def _evals(a: RunReader, b: RunReader) -> Iterator[str]:
    left, right = ({(row["dataset"], row["step"]): row for row in run.evals()} for run in (a, b))
    for key in sorted(left.keys() | right.keys(), key=lambda key: (key[1], key[0])):
        dataset, step = key
        where = f"eval {dataset} after {step} steps"
        if key not in left or key not in right:
            yield f"{where}: is only in {(a if key in left else b).path}"
            return
        yield from _records(where, left[key], right[key])
        yield from _samples(where, (a.eval_samples(dataset, step), {}), (b.eval_samples(dataset, step), {}))


def _samples(
    where: str, left: tuple[list[Sample], Advantages], right: tuple[list[Sample], Advantages]
) -> Iterator[str]:
    if len(left[0]) != len(right[0]):
        yield f"{where}: {len(left[0])} and {len(right[0])} samples"
        return
    for x, y in zip(left[0], right[0], strict=True):
        here = f"{where}: sample {x.index}"
        yield from _fields(here, x, y)
        if not _equal(left[1].get(x.index), right[1].get(y.index)):
            yield f"{here}: advantage {_differing(left[1].get(x.index), right[1].get(y.index))}"


def _fields(where: str, x: Sample, y: Sample) -> Iterator[str]:
    plain, arrays = _plain(y), _arrays(y.sequence)
    for name, value in _plain(x).items():
        if value != plain[name]:
            yield f"{where}: {name} = {value!r} and {plain[name]!r}"
    for name, array in _arrays(x.sequence).items():
        if not _equal(array, arrays[name]):
            yield f"{where}: {name} {_differing(array, arrays[name])}"
    for name in sorted(x.extras.keys() | y.extras.keys()):
        if not _equal(x.extras.get(name), y.extras.get(name)):
            yield f"{where}: extras {name} {_differing(x.extras.get(name), y.extras.get(name))}"


def _plain(sample: Sample) -> dict[str, Any]:
    """Everything but arrays and times."""
    aside = {"sequence", "extras", "timing"}
    return {name: value for name, value in sample_to_json(sample).items() if name not in aside}


def _arrays(tokens: Tokens) -> dict[str, NDArray[Any]]:
    return {
        "ids": tokens.ids,
        "sampled": tokens.sampled,
        "mask": tokens.mask,
        "behavior": tokens.behavior,
        "versions": tokens.versions,
    }


def _equal(x: NDArray[Any] | None, y: NDArray[Any] | None) -> bool:
    if x is None or y is None:
        return x is y
    return x.dtype == y.dtype and np.array_equal(x, y, equal_nan=x.dtype.kind == "f")


def _differing(x: NDArray[Any] | None, y: NDArray[Any] | None) -> str:
    """Where two arrays that are not equal part, with both values."""
    if x is None or y is None or x.shape != y.shape or x.dtype != y.dtype:
        return f"{_kind(x)} and {_kind(y)}"
    at = int(np.argmax((x != y) & ~(np.isnan(x) & np.isnan(y)) if x.dtype.kind == "f" else x != y))
    return f"at {at}: {x.flat[at]!s} and {y.flat[at]!s}"


def _kind(x: NDArray[Any] | None) -> str:
    return _ABSENT if x is None else f"{x.dtype}{list(x.shape)}"


def _weights(a: RunReader, b: RunReader) -> Iterator[str]:
    left, right = a.checkpoint(), b.checkpoint()
    for run, checkpoint in ((a, left), (b, right)):
        if checkpoint is None:
            yield f"{run.path}: has no sound checkpoint, so there are no weights to compare"
            return
    assert left is not None
    assert right is not None
    if left.step != right.step:
        yield f"checkpoint: after {left.step} and {right.step} steps"
    names = sorted(n for n in left.files.keys() | right.files.keys() if _is_weights(n))
    for name in names:
        x, y = (c.files.get(name, {}).get("sha256", _ABSENT)[:16] for c in (left, right))
        if x != y:
            yield f"checkpoint of step {left.step}: {name} has SHA-256 {x} and {y}"


def _is_weights(name: str) -> bool:
    return name.startswith("model") and name.endswith(".safetensors")
