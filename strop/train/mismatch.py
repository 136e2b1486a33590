"""How far the trainer's log-probs are from the sampler's: measured on every step, whatever the loss does.

The tokens are those of the samples that were trained on, and of a few that could not move the weights.
"""

import numpy as np
from numpy.typing import NDArray

_CLIPPED = 2.0
"""The highest weight of truncated importance sampling, unless given."""


def mismatch_metrics(old: NDArray[np.float32], behavior: NDArray[np.float32]) -> dict[str, float]:
    """Over the tokens that have both log-probs (others are NaN), with d = old − behavior: the mean and
    largest |d|; KL(behavior ‖ old) by k1, mean −d, and by k3, mean e^d − 1 − d; of the ratios w = e^d the
    effective sample size as a share of their number, (Σw)² / (n Σw²), and the share above 2, which truncated
    importance sampling clips. Empty without such tokens."""
    both = np.isfinite(old) & np.isfinite(behavior)
    if not both.any():
        return {}
    d = old[both].astype(np.float64) - behavior[both]
    limited = np.clip(d, -20, 20)
    ratio = np.exp(limited)
    return {
        "train/train_rollout_logprob_abs_diff": float(np.abs(d).mean()),
        "train/train_rollout_logprob_abs_diff_max": float(np.abs(d).max()),
        "train/mismatch_k1": float(-d.mean()),
        "train/mismatch_k3": float((np.expm1(limited) - d).mean()),
        "train/mismatch_clip_frac": float((ratio > _CLIPPED).mean()),
        "train/mismatch_ess": float(ratio.sum() ** 2 / (len(ratio) * np.square(ratio).sum())),
    }
