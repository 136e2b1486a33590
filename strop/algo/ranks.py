"""Advantages from the order of a group alone, for judges whose scores mean little by themselves.

Source: ArenaRL's quantile reward. R = 1 − ρ/(N−1) for the ρ-th best of N, then as in GRPO.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from strop.algo.advantages import relative_to_group, standardised

# G trajectories of one group, S samples

Ties = Literal["average", "min"]
"""The rank of equal scores: the mean of the places they take, or the best of them."""


def rank_advantages(
    scores: NDArray[np.float64],
    *,
    groups: NDArray[np.int64],
    trajectories: NDArray[np.int64],
    ties: Ties = "average",
    algorithm: str = "rank",
) -> NDArray[np.float64]:
    """[S] standardised rank rewards within each group; a higher score is better.

    All tied gives exactly 0. Trajectories, failures (NaN) and groups of one as in `group_advantages`.
    """
    return relative_to_group(
        scores,
        groups=groups,
        trajectories=trajectories,
        of_group=lambda scores_G: standardised(rank_rewards(scores_G, ties=ties)),
        algorithm=algorithm,
    )


def rank_rewards(scores_G: NDArray[np.float64], *, ties: Ties = "average") -> NDArray[np.float64]:
    """[G] in [0, 1], the higher the score the more; G is at least 2.

    `average`: 1 for a sole best, 0 for a sole last, whose sum does not depend on ties (all tied: ½).
    `min`: scaled so that the last of the ranks given is 0, whoever shares it (all tied: 0).
    Scores that differ by rounding are tied.
    """
    place_G = _places(scores_G, ties=ties)
    if ties == "average":
        return 1 - place_G / (len(scores_G) - 1)
    worst = float(place_G.max())
    return (worst - place_G) / max(worst, 1)


def _places(scores_G: NDArray[np.float64], *, ties: Ties) -> NDArray[np.float64]:
    """[G] from 0, the best score first."""
    order = np.argsort(-scores_G, kind="stable")
    fall = -np.diff(scores_G[order])
    differs = fall > float(np.finfo(np.float32).eps) * float(np.abs(scores_G).max())
    rank_of_place = np.concatenate([[0], np.cumsum(differs)])
    first = np.searchsorted(rank_of_place, rank_of_place, side="left")
    last = np.searchsorted(rank_of_place, rank_of_place, side="right") - 1
    place_G = np.empty(len(order), np.float64)
    place_G[order] = (first + last) / 2 if ties == "average" else first
    return place_G
