"""pass@k: the chance that at least one of k samples of a prompt passes, estimated without bias.

Of n samples of which c pass, 1 − C(n−c, k) / C(n, k) is the mean over all choices of k of them (Chen et al.
2021, arXiv:2107.03374, eq. 1). It is taken for each prompt, then averaged over prompts.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_KEY = "pass_at_"


def pass_at(k: int, *, samples: int, passed: int) -> float:
    """Of one prompt; `samples` are at least k."""
    assert 1 <= k <= samples, f"pass@{k} of {samples} samples"
    return 1 - math.comb(samples - passed, k) / math.comb(samples, k)


def pass_all(k: int, *, samples: int, passed: int) -> float:
    """pass^k of one prompt: the chance that all of k samples pass, C(c, k) / C(n, k) (τ-bench,
    arXiv:2406.12045 §4); `samples` are at least k."""
    assert 1 <= k <= samples, f"pass^{k} of {samples} samples"
    return math.comb(passed, k) / math.comb(samples, k)


def ks(samples: int) -> list[int]:
    """The k that are told of so many samples a prompt: 1, 2, 4, … and `samples` itself."""
    powers = [2**i for i in range(samples.bit_length()) if 2**i < samples]
    return [*powers, samples]


def figure(k: int, threshold: float) -> Callable[[Sequence[float]], float | None]:
    """From the rewards of one prompt's trajectories to its pass@k; None when they are fewer than k."""

    def of(rewards: Sequence[float]) -> float | None:
        if len(rewards) < k:
            return None
        return pass_at(k, samples=len(rewards), passed=sum(reward >= threshold for reward in rewards))

    return of


def told(result: Mapping[str, Any]) -> dict[int, float | None]:
    """k → pass@k of a record of eval/results.jsonl, k rising; None where no prompt had k rewards."""
    found = {int(name[len(_KEY) :]): value for name, value in result.items() if name.startswith(_KEY)}
    return dict(sorted(found.items()))
