"""Process rewards: where the steps of a response end, and what each is worth."""

from collections.abc import Collection
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

# T tokens of one response, S steps, R completions from each step

StepLabel = Literal["soft", "hard"]


def step_ends(ids_T: NDArray[np.integer[Any]], *, separators: Collection[int]) -> NDArray[np.int64]:
    """[S] the position of each step's last token: its separator, or the end of the response.

    A separator after a separator ends no further step, so empty steps cannot be added to be paid for.
    """
    is_separator_T = np.isin(ids_T, list(separators))
    # A step ends where a separator follows a word, or with the response.
    ends = np.flatnonzero(is_separator_T[1:] & ~is_separator_T[:-1]) + 1
    ends_in_a_word = len(ids_T) > 0 and not is_separator_T[-1]
    return np.append(ends, len(ids_T) - 1) if ends_in_a_word else ends


def step_bce(logit_S: Tensor, label_S: Tensor) -> Tensor:
    """[S] −y log p − (1 − y) log(1 − p), p = σ(logit) at the ends of steps; labels in [0, 1]
    (arXiv:2305.20050; soft labels: arXiv:2312.08935)."""
    return binary_cross_entropy_with_logits(logit_S, label_S, reduction="none")


def step_gains(score_S: NDArray[np.floating[Any]], *, start: float) -> NDArray[np.floating[Any]]:
    """[S] by how much each step raises the chance of success, the first from `start`: they add up to
    last − start, whatever steps are put between (arXiv:2410.08146)."""
    gain_S: NDArray[np.floating[Any]] = np.diff(score_S, prepend=start)
    return gain_S


def monte_carlo_labels(is_right_SR: NDArray[np.bool_], *, kind: StepLabel) -> NDArray[np.float64]:
    """[S] from R ≥ 1 completions that go on from each step: `soft` the share that ends right, `hard` 1 if any
    does (arXiv:2312.08935)."""
    right_S = is_right_SR.any(axis=1) if kind == "hard" else is_right_SR.mean(axis=1)
    return np.asarray(right_S, np.float64)
