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
    return np.where(mask_N, spans.back(return_N), 0.0)


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
    in_order, mask_in_order = value_N[spans.order_N], mask_N[spans.order_N]
    next_N = _next_values(in_order, mask_in_order, spans, _inflow(next_value_S, spans), chunk)
    advantage_N = masked_scan(
        gain_N[spans.order_N] + discount * next_N - in_order,
        mask_N=mask_in_order,
        weight=discount * trace,
        last_places=spans.last_places,
        chunk=chunk,
    )
    advantage_N = np.where(mask_N, spans.back(advantage_N), 0.0)
    return Estimates(advantage_N=advantage_N, return_N=advantage_N + value_N)


def _next_values(
    value_N: NDArray[np.float64],
    mask_N: NDArray[np.bool_],
    spans: Spans,
    inflow: NDArray[np.float64],
    chunk: int,
) -> NDArray[np.float64]:
    """[N] the value of the next trained token, `inflow` where there is none; in the order of spans."""
    here_N = masked_scan(
        value_N, mask_N=mask_N, weight=0.0, last_places=spans.last_places, inflow=inflow, chunk=chunk
    )
    next_N = np.empty_like(here_N)
    next_N[:-1] = here_N[1:]
    next_N[spans.last_places] = inflow
    return next_N


def _inflow(next_value_S: NDArray[np.float64] | None, spans: Spans) -> NDArray[np.float64]:
    """One for each filled span: the value behind its last sample."""
    inflow_R = np.zeros(len(spans), np.float64)
    if next_value_S is not None:
        inflow_R[spans.span_of_sample_S] = next_value_S
    return inflow_R[spans.filled]
