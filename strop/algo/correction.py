"""Off-policy corrections: how much a token counts that another policy drew than the one that is trained.

The ratio is exp(old − behavior): staleness and the difference between sampler and trainer. By name:

| name | weighting | rejection |
|---|---|---|
| TIS | token, truncate or clip, [0, 2] | |
| IcePop | token, mask, [0.5, 5] | |
| MIS | any level, any mode | |
| rejection sampling | | any level |
| seq-mask-tis | token, truncate | geometric |
| decoupled PPO (arXiv:2110.00641; AReaL, arXiv:2505.24298) | token, truncate, [0, ∞) | |

Everything is detached. A rejected token keeps its place in the denominators: kept ones would weigh more.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from strop.algo.finite import check_trained
from strop.algo.kl import LOG_RATIO_LIMIT
from strop.algo.sequence import Sums, mean_of_sample

# N tokens

Level = Literal["token", "sequence", "geometric"]
"""What the ratio is of: a token, the product over a sample's trained tokens, their geometric mean."""
Mode = Literal["truncate", "clip", "mask"]


@dataclass(frozen=True, slots=True)
class Window:
    """The ratios low ≤ w ≤ high at one level."""

    level: Level
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Weighting:
    """`truncate`: min(w, high), low has no part in it; `clip`: into the window; `mask`: 0 outside of it."""

    window: Window
    mode: Mode


@dataclass(frozen=True, slots=True)
class Rules:
    """What is done to the loss; parts that are None do nothing."""

    weighting: Weighting | None = None
    rejection: Window | None = None
    """Tokens whose ratio lies outside count 0; the others keep their weight."""
    veto: float | None = None
    """A sample counts 0 as a whole if one of its tokens has a ratio below this, e.g. 1e-4."""


@dataclass(frozen=True, slots=True)
class Correction:
    """Of N tokens, detached; a token that is not trained has weight 1 and is neither clipped nor rejected."""

    weight_N: Tensor
    """Multiplies the loss; 0 where rejected."""
    clipped_N: Tensor
    """bool: `truncate` or `clip` moved the ratio."""
    rejected_N: Tensor
    """bool: by the window of `mask`, by rejection or by veto."""


@torch.no_grad()
def correct(
    old_N: Tensor,
    behavior_N: Tensor,
    *,
    rules: Rules,
    mask_N: Tensor,
    sums: Sums,
    mean_weight: float | None = None,
) -> Correction:
    """The correction of every token. `mask_N`, bool: trained tokens; what others hold is ignored, also NaN.

    `mean_weight`, that of `mean_of_weights` over the whole update, divides the weights: their mean is then 1.
    Raises NonFinite when a trained token has no finite `behavior`: a comparison with NaN would let it pass.
    NaN in `old_N`, which the loss itself has too, is left to what the trainer does about a loss of NaN.
    """
    check_trained(mask_N, behavior=behavior_N)
    log_ratio_N = torch.where(mask_N, old_N - behavior_N, 0)
    weight_N = torch.ones_like(log_ratio_N)
    clipped_N = rejected_N = torch.zeros_like(mask_N)
    if rules.weighting is not None:
        ratio_N = _ratios(log_ratio_N, rules.weighting.window.level, mask_N, sums)
        weight_N, clipped_N, rejected_N = _weigh(ratio_N, rules.weighting)
        if mean_weight is not None:
            weight_N = weight_N / mean_weight
    if rules.rejection is not None:
        ratio_N = _ratios(log_ratio_N, rules.rejection.level, mask_N, sums)
        rejected_N = rejected_N | _is_outside(ratio_N, rules.rejection)
    if rules.veto is not None:
        is_vetoed_N = mask_N & (_ratios(log_ratio_N, "token", mask_N, sums) < rules.veto)
        rejected_N = rejected_N | (sums(is_vetoed_N.to(weight_N.dtype)) > 0)
    rejected_N = rejected_N & mask_N
    weight_N = torch.where(rejected_N, 0, torch.where(mask_N, weight_N, 1))
    return Correction(weight_N, clipped_N=clipped_N & mask_N & ~rejected_N, rejected_N=rejected_N)


def mean_of_weights(
    old_N: Tensor, behavior_N: Tensor, *, weighting: Weighting, mask_N: Tensor, sums: Sums
) -> float:
    """The mean weight of the trained tokens, the zeros of `mask` among them, before any rejection or veto.

    For batch normalisation it is taken over the whole update: a mean of a micro-batch would make the loss
    depend on the split. 0 without trained tokens.
    """
    found = correct(old_N, behavior_N, rules=Rules(weighting), mask_N=mask_N, sums=sums)
    return float(found.weight_N[mask_N].double().sum() / max(int(mask_N.sum()), 1))


def _ratios(log_ratio_N: Tensor, level: Level, mask_N: Tensor, sums: Sums) -> Tensor:
    if level == "sequence":
        log_ratio_N = sums(log_ratio_N)
    elif level == "geometric":
        log_ratio_N = mean_of_sample(log_ratio_N, mask_N, sums)
    return log_ratio_N.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).exp()


def _is_outside(ratio_N: Tensor, window: Window) -> Tensor:
    return (ratio_N < window.low) | (ratio_N > window.high)


def _weigh(ratio_N: Tensor, weighting: Weighting) -> tuple[Tensor, Tensor, Tensor]:
    """Weight, whether it was moved, whether it was put to 0."""
    window, none_N = weighting.window, torch.zeros_like(ratio_N, dtype=torch.bool)
    if weighting.mode == "mask":
        is_outside_N = _is_outside(ratio_N, window)
        return torch.where(is_outside_N, 0, ratio_N), none_N, is_outside_N
    low = window.low if weighting.mode == "clip" else 0.0
    weight_N = ratio_N.clamp(low, window.high)
    return weight_N, weight_N != ratio_N, none_N
