"""What follows from each token: discounted returns, and GAE (arXiv:1506.02438, eq. 16) with a critic.

Only trained tokens are acts. The next one is the next trained token of the span: a tool's answer between them
earns nothing, ends nothing and is not discounted for, and what its columns hold is never read.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strop.algo.scan import CHUNK, masked_scan
from strop.algo.spans import Spans
from strop.algo.trained import trained_values

# N tokens of S samples in R spans


@dataclass(frozen=True, slots=True)
class Estimates:
    """float64 columns of their own, 0 where nothing is trained."""

    advantage_N: NDArray[np.float64]
    return_N: NDArray[np.float64]
    """Advantage + value, what the critic learns; of the advantage as it is before it is whitened."""


def discounted_returns(
    reward_N: NDArray[np.float64],
    *,
    mask_N: NDArray[np.bool_],
    spans: Spans,
    discount: float,
    next_value_S: NDArray[np.float64] | None = None,
    chunk: int = CHUNK,
) -> NDArray[np.float64]:
    """[N] G_t = r_t + γ·G_{t'} inside a span, 0 where nothing is trained.

    With `Spans.of_samples` nothing crosses from one sample of a trajectory to another; with
    `Spans.of_trajectories` its earlier samples are credited with what the later ones earn. `next_value_S` is
    what would have followed a sample that was cut off, 0 for one that ended; of a span, the last sample's.
    Raises NonFinite for a trained token whose reward is not a number.
    """
    gain_N = trained_values(reward_N, mask_N, name="reward")
    return_N = masked_scan(
        gain_N[spans.order_N],
        mask_N=mask_N[spans.order_N],
        weight=discount,
        last_places=spans.last_places,
        inflow=_inflow(next_value_S, spans),
        chunk=chunk,
    )
    return spans.back(return_N) * mask_N


def advantage_estimates(
    reward_N: NDArray[np.float64],
    value_N: NDArray[np.floating],
    *,
    mask_N: NDArray[np.bool_],
    spans: Spans,
    discount: float,
    trace: float,
    next_value_S: NDArray[np.float64] | None = None,
    chunk: int = CHUNK,
) -> Estimates:
    """GAE: δ_t = r_t + γ·V_{t'} − V_t and Â_t = δ_t + γλ·Â_{t'}, λ = `trace`.

    V is 0 after the last trained token of a span, or `next_value_S`, the critic's value of the state in which
    a sample was cut off (0 for one that ended). Spans as in `discounted_returns`. Raises NonFinite for a
    trained token whose reward or value is not a number.
    """
    value_N = trained_values(value_N, mask_N, name="value")
    gain_N = trained_values(reward_N, mask_N, name="reward")
    in_order_N = mask_N[spans.order_N]
    delta_N = _differences(
        gain_N[spans.order_N],
        value_N[spans.order_N],
        trained=np.flatnonzero(in_order_N),
        spans=spans,
        discount=discount,
        inflow=_inflow(next_value_S, spans),
    )
    advantage_N = masked_scan(
        delta_N, mask_N=in_order_N, weight=discount * trace, last_places=spans.last_places, chunk=chunk
    )
    advantage_N = spans.back(advantage_N) * mask_N
    return Estimates(advantage_N=advantage_N, return_N=advantage_N + value_N)


def _differences(
    reward_N: NDArray[np.float64],
    value_N: NDArray[np.float64],
    *,
    trained: NDArray[np.int64],
    spans: Spans,
    discount: float,
    inflow: NDArray[np.float64],
) -> NDArray[np.float64]:
    """[N] δ of the places `trained`, 0 at the others; all in the order of spans.

    V_{t'} is the value of the next of them, and the inflow of the span for the last of it.
    """
    delta_N = np.zeros(len(value_N), np.float64)
    if not len(trained):
        return delta_N
    next_value = np.append(value_N[trained[1:]], 0.0)
    last = np.searchsorted(trained, spans.last_places, side="right") - 1
    has_one = (last >= 0) & (trained[last] >= spans.offsets_R[spans.filled])
    next_value[last[has_one]] = inflow[has_one]
    delta_N[trained] = reward_N[trained] + discount * next_value - value_N[trained]
    return delta_N


def _inflow(next_value_S: NDArray[np.float64] | None, spans: Spans) -> NDArray[np.float64]:
    """One for each filled span: the value behind its last sample."""
    inflow_R = np.zeros(len(spans), np.float64)
    if next_value_S is not None:
        inflow_R[spans.span_of_sample_S] = next_value_S
    return inflow_R[spans.filled]
