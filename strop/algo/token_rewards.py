"""Rewards of single tokens: what an outcome, a turn or a step is worth."""

import numpy as np
from numpy.typing import NDArray

from strop.algo.advantages import trajectory_rewards
from strop.algo.spans import Spans
from strop.errors import NonFinite

# N tokens of S samples in R spans, K rewards


def outcome_rewards(
    rewards: NDArray[np.float64], *, mask_N: NDArray[np.bool_], spans: Spans
) -> NDArray[np.float64]:
    """[N] each span's reward on its last trained token, which a tool's answer may follow; 0 elsewhere.

    A span's reward is the mean of its samples' [S], those that failed (NaN) left out. A span of which
    nothing is trained gets none. Raises NonFinite when a span that is trained has no reward.
    """
    reward_S = trajectory_rewards(rewards, trajectories=spans.span_of_sample_S)
    reward_R = np.empty(len(spans), np.float64)
    reward_R[spans.span_of_sample_S] = reward_S
    return placed_rewards(
        reward_R[spans.filled], end_K=spans.order_N[spans.last_places], mask_N=mask_N, spans=spans
    )


def placed_rewards(
    reward_K: NDArray[np.float64], *, end_K: NDArray[np.int64], mask_N: NDArray[np.bool_], spans: Spans
) -> NDArray[np.float64]:
    """[N] the reward of each turn or step on its last trained token; `end_K` is the token at which it ends.

    Where none of the turn is trained, it is on the last trained token before it in the span: what was done
    earlier led to it all the same. Where there is none before it either, there is nothing to credit.
    Several on one token add up. Raises NonFinite for a reward that is not a number.
    """
    place_of_token = np.empty(len(mask_N), np.int64)
    place_of_token[spans.order_N] = np.arange(len(mask_N))
    end_place_K = place_of_token[end_K]
    is_trained = mask_N[spans.order_N]
    latest = np.maximum.accumulate(np.where(is_trained, np.arange(len(mask_N)), -1))[end_place_K]
    begin_K = spans.offsets_R[np.searchsorted(spans.offsets_R, end_place_K, side="right") - 1]
    has_place = latest >= begin_K
    _check_rewards(reward_K[has_place])
    reward_N = np.zeros(len(mask_N), np.float64)
    np.add.at(reward_N, spans.order_N[latest[has_place]], reward_K[has_place])
    return reward_N


def turn_ends(sampled_N: NDArray[np.bool_], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """The last token of every run of sampled tokens of a sample, in order: where its turns end.

    Two replies with nothing between them are one run.
    """
    is_last = np.zeros(len(sampled_N), bool)
    is_last[:-1] = sampled_N[:-1] & ~sampled_N[1:]
    last = offsets[1:][np.diff(offsets) > 0] - 1
    is_last[last] = sampled_N[last]
    return np.flatnonzero(is_last)


def _check_rewards(reward_K: NDArray[np.float64]) -> None:
    bad = reward_K[~np.isfinite(reward_K)]
    if len(bad):
        raise NonFinite(f"{len(bad)} rewards of trained tokens are not finite; the first is {float(bad[0])}")
