"""How far the trainer's log-probs are from the sampler's: measured on every step, whatever the loss does.

The tokens are those of the samples that were trained on, and of a few that could not move the weights.
"""

import numpy as np
from numpy.typing import NDArray


def mismatch_metrics(old: NDArray[np.float32], behavior: NDArray[np.float32]) -> dict[str, float]:
    """Over the tokens that have both log-probs (others are NaN): the mean and largest |old − behavior|, and
    the k3 estimate of KL(behavior ‖ old), e^d − 1 − d with d = old − behavior. Empty without such tokens."""
    both = np.isfinite(old) & np.isfinite(behavior)
    if not both.any():
        return {}
    d = old[both].astype(np.float64) - behavior[both]
    return {
        "train/train_rollout_logprob_abs_diff": float(np.abs(d).mean()),
        "train/train_rollout_logprob_abs_diff_max": float(np.abs(d).max()),
        "train/mismatch_k3": float((np.expm1(np.clip(d, -20, 20)) - d).mean()),
    }
