"""GAE of a packed step by the chunked scan, against the loop over tokens.

python benchmarks/gae_scan.py. Two loops: the plain one, a token at a time in Python floats (the ratio), and
the one of padded frameworks, a numpy row of all samples at each position (`details.over_padded_loop`).
"""

from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from harness import interleaved, line_of, print_lines, ratio_of, seconds, watched
from numpy.typing import NDArray

from strop.algo.returns import advantage_estimates
from strop.algo.spans import Spans
from strop.runtime.memory import peak_bytes

NAME = "gae_scan"
MINUTES = 0.3
SAMPLES, LONGEST, REPEATS = 256, 8192, 7
DISCOUNT, TRACE = 0.99, 0.95


@dataclass(frozen=True, slots=True)
class Step:
    """Random columns: long answers of uneven length, a fifth of their tokens a tool's."""

    reward_N: NDArray[np.float64]
    value_N: NDArray[np.float64]
    mask_N: NDArray[np.bool_]
    offsets: NDArray[np.int64]

    @classmethod
    def drawn(cls) -> "Step":
        rng = np.random.default_rng(0)
        lengths = np.clip(rng.lognormal(np.log(1024), 0.8, SAMPLES), 1, LONGEST).astype(int)
        n = int(lengths.sum())
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        return cls(rng.normal(size=n), rng.normal(size=n), rng.random(n) < 0.8, offsets)

    def scan(self) -> NDArray[np.float64]:
        """Ours."""
        return advantage_estimates(
            self.reward_N,
            self.value_N,
            mask_N=self.mask_N,
            spans=Spans.of_samples(self.offsets),
            discount=DISCOUNT,
            trace=TRACE,
        ).advantage_N

    def loop(self) -> NDArray[np.float64]:
        """A token at a time, on Python's floats, which are faster to index than an array's."""
        rewards, values, mask = self.reward_N.tolist(), self.value_N.tolist(), self.mask_N.tolist()
        advantages = [0.0] * len(rewards)
        for begin, end in zip(self.offsets[:-1].tolist(), self.offsets[1:].tolist(), strict=True):
            advantage = following = 0.0
            for t in range(end - 1, begin - 1, -1):
                if mask[t]:
                    advantage = rewards[t] + DISCOUNT * following - values[t] + DISCOUNT * TRACE * advantage
                    following = values[t]
                    advantages[t] = advantage
        return np.array(advantages)

    def padded_loop(self) -> NDArray[np.float64]:
        """A position at a time, over all samples, from and to the packed row."""
        lengths = np.diff(self.offsets)
        is_there = np.arange(int(lengths.max())) < lengths[:, None]
        reward, value, mask = (np.zeros(is_there.shape) for _ in range(3))
        reward[is_there], value[is_there], mask[is_there] = self.reward_N, self.value_N, self.mask_N
        found = np.zeros(is_there.shape)
        advantage, following = np.zeros(len(lengths)), np.zeros(len(lengths))
        for t in range(is_there.shape[1] - 1, -1, -1):
            m = mask[:, t]
            delta = reward[:, t] + DISCOUNT * following - value[:, t]
            advantage = m * (delta + DISCOUNT * TRACE * advantage) + (1 - m) * advantage
            following = m * value[:, t] + (1 - m) * following
            found[:, t] = m * advantage
        return found[is_there]


def bench() -> list[dict[str, Any]]:
    """Seconds of the loop over seconds of the scan."""
    step = Step.drawn()
    ways = {"loop": step.loop, "padded loop": step.padded_loop, "scan": step.scan}
    first = {name: way() for name, way in ways.items()}
    for found in first.values():
        np.testing.assert_allclose(found, first["loop"], rtol=0, atol=1e-10)
    with watched() as machine:
        took = interleaved({name: lambda way=way: 1e3 * seconds(way) for name, way in ways.items()}, REPEATS)
    details = {
        "tokens": len(step.reward_N),
        "longest": int(np.diff(step.offsets).max()),
        "scan_ms": median(took["scan"]),
        "loop_ms": median(took["loop"]),
        "padded_loop_ms": median(took["padded loop"]),
        "over_padded_loop": ratio_of(took["padded loop"], took["scan"]),
        "peak_gib": peak_bytes() / 2**30,
    }
    return [line_of(NAME, ratio_of(took["loop"], took["scan"]), REPEATS, **details, **machine)]


if __name__ == "__main__":
    print_lines(bench())
