"""The advantages that `algo.advantage` names, each from a `Batch` to one number a response token."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from strop.algo import step_credit
from strop.algo.advantages import greedy_advantages, group_advantages, leave_one_out_advantages
from strop.algo.batch import Batch
from strop.algo.ranks import rank_advantages
from strop.algo.returns import advantage_estimates, discounted_returns
from strop.algo.spans import Spans
from strop.algo.token_rewards import outcome_rewards
from strop.config.algo import Algo
from strop.errors import PluginError
from strop.plugins import resolve

# S samples, N tokens

Advantage = Callable[[Batch, NDArray[np.float64]], NDArray[np.float64]]
"""`(batch, penalty_N) -> advantage_N`; the penalty is what KL takes from the reward of each token."""
CustomAdvantage = Callable[[Batch], NDArray[np.floating]]
"""`(batch) -> array`: the advantage of every response token of the step, [N] (`batch.spread` makes it of one
number a sample). What an untrained token has is ignored. Whitening and KL in the reward come after it."""

GROUP = "strop.advantages"
"""Entry points of installed packages that are advantages."""


def open_advantage(section: Algo) -> Advantage:
    """Of `algo.advantage`. Raises PluginError for a name that is none."""
    of_samples: dict[str, Callable[[Batch], NDArray[np.float64]]] = {
        "group": lambda batch: _group(batch, section),
        "leave_one_out": lambda batch: _leave_one_out(batch, section),
        "rank": lambda batch: _rank(batch, section),
        "greedy": _greedy,
        "none": lambda batch: np.zeros(len(batch.samples)),
    }
    name, key = section.advantage, "algo.advantage"
    if name in of_samples:
        return lambda batch, penalty_N: of_samples[name](batch)[batch.sample_of_token] - penalty_N
    if name == "steps":
        return lambda batch, penalty_N: step_credit.steps(batch) - penalty_N
    if name == "turns":
        return lambda batch, penalty_N: step_credit.turns(batch, penalty_N, discount=section.gamma)
    if name == "returns":
        return lambda batch, penalty_N: _returns(batch, penalty_N, discount=section.gamma)
    if name == "gae":
        return lambda batch, penalty_N: _gae(batch, penalty_N, section)
    names = {
        **of_samples,
        "steps": step_credit.steps,
        "turns": step_credit.turns,
        "returns": _returns,
        "gae": _gae,
    }
    fn: CustomAdvantage = resolve(name, key=key, names=names, group=GROUP)
    return lambda batch, penalty_N: _custom(fn, batch, what=f"{key} = {name!r}") - penalty_N


def _group(batch: Batch, section: Algo) -> NDArray[np.float64]:
    return group_advantages(
        batch.rewards,
        groups=batch.groups,
        trajectories=batch.trajectories,
        normalize_std=section.normalize_std,
        algorithm=section.type,
    )


def _leave_one_out(batch: Batch, section: Algo) -> NDArray[np.float64]:
    return leave_one_out_advantages(
        batch.rewards, groups=batch.groups, trajectories=batch.trajectories, algorithm=section.type
    )


def _rank(batch: Batch, section: Algo) -> NDArray[np.float64]:
    return rank_advantages(
        batch.rewards, groups=batch.groups, trajectories=batch.trajectories, algorithm=section.type
    )


def _greedy(batch: Batch) -> NDArray[np.float64]:
    return greedy_advantages(
        batch.rewards, groups=batch.groups, trajectories=batch.trajectories, greedy=batch.greedy
    )


def _returns(batch: Batch, penalty_N: NDArray[np.float64], *, discount: float) -> NDArray[np.float64]:
    """The samples of a trajectory are one sequence: what a later one earns is credited to earlier ones."""
    spans = Spans.of_trajectories(batch.offsets, batch.trajectories)
    reward_N = outcome_rewards(batch.rewards, mask_N=batch.mask, spans=spans)
    return discounted_returns(reward_N - penalty_N, mask_N=batch.mask, spans=spans, discount=discount)


def _gae(batch: Batch, penalty_N: NDArray[np.float64], section: Algo) -> NDArray[np.float64]:
    """Spans as in `_returns`. What the critic learns, the returns, goes into `batch.scored`."""
    spans = Spans.of_trajectories(batch.offsets, batch.trajectories)
    reward_N = outcome_rewards(batch.rewards, mask_N=batch.mask, spans=spans)
    estimates = advantage_estimates(
        reward_N - penalty_N,
        batch.scored["values"],
        mask_N=batch.mask,
        spans=spans,
        discount=section.gamma,
        trace=section.lambd,
        next_value_S=_next_values(batch) if section.critic.bootstrap else None,
    )
    batch.scored["returns"] = estimates.return_N.astype(np.float32)
    return estimates.advantage_N


def _next_values(batch: Batch) -> NDArray[np.float64]:
    """[S] what would have followed a response that was cut off; 0 behind one that ended."""
    next_value_S = np.zeros(len(batch.samples), np.float64)
    rows = np.flatnonzero(batch.truncated & (np.diff(batch.offsets) > 0))
    next_value_S[rows] = batch.scored["next_values"][batch.offsets[rows]]
    return next_value_S


def _custom(fn: CustomAdvantage, batch: Batch, *, what: str) -> NDArray[np.float64]:
    given: object = fn(batch)
    if not isinstance(given, np.ndarray) or given.shape != (batch.num_tokens,):
        told = list(given.shape) if isinstance(given, np.ndarray) else f"a {type(given).__name__}"
        raise PluginError(f"{what}: expected an array of {batch.num_tokens} advantages, got {told}")
    if given.dtype.kind not in "fiub":
        raise PluginError(f"{what}: expected an array of numbers, got one of {given.dtype}")
    column_N = given.astype(np.float64)
    bad = batch.mask & ~np.isfinite(column_N)
    if bad.any():
        first = int(bad.argmax())
        raise PluginError(f"{what}: the advantage of token {first}, which is trained, is {column_N[first]}")
    return np.where(batch.mask, column_N, 0.0)
