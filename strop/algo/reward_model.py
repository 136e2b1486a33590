"""Losses of reward models: what scores should say of responses that people compared or marked.

A response's score is the head's output on its last token, which is found by its place (`end_rows`): searching
for the padding id would end at the first end-of-turn where the two ids are one (TRL#6357).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import logsigmoid

# P pairs, S responses, L lists of K responses, M token positions of all pairs


def bradley_terry(
    chosen_P: Tensor, rejected_P: Tensor, *, margin_P: Tensor | float = 0.0, centering: float = 0.0
) -> Tensor:
    """[P] −log σ(s_w − s_l − margin) + c · (s_w + s_l)² of the scores of pairs.

    `margin_P`: by how much the chosen one is better, in units of score (arXiv:2307.09288 eq. 2). `centering`
    c > 0 draws scores to a mean of 0 (arXiv:2312.09244); without it only differences are determined.
    """
    loss_P = -logsigmoid(chosen_P - rejected_P - margin_P)
    return loss_P + centering * (chosen_P + rejected_P).square() if centering else loss_P


def bradley_terry_per_token(
    chosen_M: Tensor, rejected_M: Tensor, *, pair_M: Tensor, num_pairs: int
) -> Tensor:
    """[P] the mean over a pair's positions of −log σ(s_w − s_l), scores of every token that `aligned` names
    (DeepSpeed-Chat). Every prefix learns to be told apart; the score to use later is still that of the end.
    """
    loss_M = -logsigmoid(chosen_M - rejected_M)
    sum_P = loss_M.new_zeros(num_pairs).index_add(0, pair_M, loss_M)
    return sum_P / pair_M.bincount(minlength=num_pairs)


@dataclass(frozen=True, slots=True)
class Aligned:
    """Which tokens of two responses are compared, int64 of one length, at least 1."""

    chosen: NDArray[np.int64]
    rejected: NDArray[np.int64]


def aligned(chosen_ids: NDArray[np.integer], rejected_ids: NDArray[np.integer]) -> Aligned:
    """From the first token that differs to the end of the longer one; the shorter stays at its last token.

    Raises ValueError when the two are the same.
    """
    shared = min(len(chosen_ids), len(rejected_ids))
    differs = np.flatnonzero(chosen_ids[:shared] != rejected_ids[:shared])
    if not len(differs) and len(chosen_ids) == len(rejected_ids):
        raise ValueError("the chosen and the rejected response are the same tokens; expected two that differ")
    first = int(differs[0]) if len(differs) else shared
    positions = np.arange(first, max(len(chosen_ids), len(rejected_ids)))
    return Aligned(np.minimum(positions, len(chosen_ids) - 1), np.minimum(positions, len(rejected_ids) - 1))


def pointwise(score_S: Tensor, label_S: Tensor) -> Tensor:
    """[S] (score − label)²."""
    return (score_S - label_S).square()


def plackett_luce(score_LK: Tensor) -> Tensor:
    """[L] −Σ_k (s_k − log Σ_{j ≥ k} exp s_j) of scores in the order of preference, best first (Plackett
    1975): the best is chosen among all, the second among the others, … With K = 2 it is Bradley–Terry."""
    among_the_rest_LK = score_LK.flip(-1).logcumsumexp(-1).flip(-1)
    return (among_the_rest_LK - score_LK).sum(-1)


def end_rows(lengths: Sequence[int]) -> NDArray[np.int64]:
    """[S] the row of each response's last token where the tokens of all stand end to end. Lengths count every
    token, an end-of-turn that is also the padding id included; each is at least 1."""
    return np.cumsum(lengths, dtype=np.int64) - 1


def num_right(chosen_P: Tensor, rejected_P: Tensor) -> int:
    """Pairs whose chosen response scores strictly higher: one that says the same of all is never right."""
    return int(torch.count_nonzero(chosen_P > rejected_P))
