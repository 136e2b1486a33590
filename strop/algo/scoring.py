"""What a reward model learns: from the scores of a micro-batch, in whole groups, to one loss; and how often
held-out scores are right.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.algo.base import Loss, Need
from strop.algo.batch import Batch
from strop.algo.reward_model import (
    Aligned,
    aligned,
    bradley_terry,
    bradley_terry_per_token,
    plackett_luce,
    pointwise,
)
from strop.config.algo import Algo
from strop.config.offline import TARGET
from strop.sample import Sample

# S samples of G groups, P pairs, N tokens, M token positions of all pairs


@dataclass(frozen=True, slots=True)
class Scored:
    """S samples, those of a group side by side, and all of them."""

    samples: list[Sample]
    end_S: Tensor
    """The score of each response; carries the gradient."""
    token_N: Tensor
    """Scores of the states behind every response token, sample by sample; the last of a sample is its end."""

    @property
    def groups(self) -> list[list[int]]:
        """Rows of the samples of each group."""
        found: dict[int, list[int]] = {}
        for row, sample in enumerate(self.samples):
            found.setdefault(sample.group_id, []).append(row)
        return list(found.values())


class Objective(Protocol):
    """A way to learn from groups of scores."""

    def loss(self, scored: Scored, *, weight: float) -> Loss:
        """Σ over groups of weight · the group's loss; `weight` is 1 / groups of the whole update."""
        ...

    def is_right(self, samples: list[Sample], score_S: NDArray[np.floating]) -> float:
        """How far the scores of one group say what it says itself, in [0, 1]; of a mark, less the squared
        error."""
        ...


class PairScores:
    """Bradley–Terry on pairs, the chosen response first."""

    def __init__(self, section: Algo) -> None:
        self._section = section.reward_model

    def loss(self, scored: Scored, *, weight: float) -> Loss:
        """See `Objective`. Parts: the scores, by the names of preference losses."""
        section, chosen_P, rejected_P = self._section, scored.end_S[::2], scored.end_S[1::2]
        if section.per_token:
            loss_P = _per_token(scored)
            if section.centering:
                loss_P = loss_P + section.centering * (chosen_P + rejected_P).square()
        else:
            margin_P = _margins(scored.samples[::2], section.margin_field)
            loss_P = bradley_terry(
                chosen_P, rejected_P, margin_P=margin_P.to(chosen_P), centering=section.centering
            )
        values = {
            "rewards/chosen": chosen_P,
            "rewards/rejected": rejected_P,
            "rewards/margins": chosen_P - rejected_P,
            "rewards/accuracies": (chosen_P > rejected_P).to(chosen_P.dtype),
        }
        parts = {name: weight * value_P.detach().sum() for name, value_P in values.items()}
        return Loss(weight * loss_P.sum(), parts)

    def is_right(self, samples: list[Sample], score_S: NDArray[np.floating]) -> float:  # noqa: ARG002
        """1 where the chosen response scores strictly higher: to say the same of both is never right."""
        return float(score_S[0] > score_S[1])


class RankedScores:
    """Plackett–Luce on lists, best first."""

    def loss(self, scored: Scored, *, weight: float) -> Loss:
        """See `Objective`. Part: the share of ordered pairs of a list that the scores order alike."""
        losses = [plackett_luce(scored.end_S[rows][None])[0] for rows in scored.groups]
        right = [_ordered_share(scored.end_S[rows].detach().numpy()) for rows in scored.groups]
        parts = {"rewards/accuracies": torch.tensor(weight * sum(right))}
        return Loss(weight * torch.stack(losses).sum(), parts)

    def is_right(self, samples: list[Sample], score_S: NDArray[np.floating]) -> float:  # noqa: ARG002
        """The share of a list's pairs that are ordered alike, strictly."""
        return _ordered_share(score_S)


class MarkedScores:
    """Regression on numbers that responses were marked with."""

    def loss(self, scored: Scored, *, weight: float) -> Loss:
        """See `Objective`."""
        label_S = torch.tensor([float(s.metadata[TARGET]) for s in scored.samples]).to(scored.end_S)
        loss_S = pointwise(scored.end_S, label_S)
        return Loss(weight * loss_S.sum(), {"squared_error": weight * loss_S.detach().sum()})

    def is_right(self, samples: list[Sample], score_S: NDArray[np.floating]) -> float:
        """Less the squared error: the more the better."""
        return -float(np.square(score_S[0] - float(samples[0].metadata[TARGET])))


class NoCredit:
    """A `Crediting`: the loss is all there is."""

    needs: frozenset[Need] = frozenset()

    def credit(self, batch: Batch) -> None:
        """Nothing."""


def open_objective(section: Algo) -> Objective:
    """Of `algo.objective`."""
    match section.objective:
        case "bradley_terry":
            return PairScores(section)
        case "plackett_luce":
            return RankedScores()
    return MarkedScores()


def _margins(samples: list[Sample], name: str | None) -> Tensor:
    return torch.tensor([0.0 if name is None else float(s.metadata[name]) for s in samples])


def _per_token(scored: Scored) -> Tensor:
    """[P] see `bradley_terry_per_token`. Of two responses of the same tokens, as two can be that were cut to
    `prompts.rows.max_tokens`, the ends are compared, which teaches nothing."""
    responses = [s.sequence.ids[s.prompt_length :] for s in scored.samples]
    starts = np.concatenate([[0], np.cumsum([len(ids) for ids in responses])])
    chosen, rejected, pairs = [], [], []
    for pair in range(len(responses) // 2):
        both = _compared(responses[2 * pair], responses[2 * pair + 1])
        chosen.append(starts[2 * pair] + both.chosen)
        rejected.append(starts[2 * pair + 1] + both.rejected)
        pairs.append(np.full(len(both.chosen), pair))
    chosen_M, rejected_M, pair_M = (torch.from_numpy(np.concatenate(x)) for x in (chosen, rejected, pairs))
    return bradley_terry_per_token(
        scored.token_N[chosen_M], scored.token_N[rejected_M], pair_M=pair_M, num_pairs=len(pairs)
    )


def _compared(chosen_ids: NDArray[np.int32], rejected_ids: NDArray[np.int32]) -> Aligned:
    if np.array_equal(chosen_ids, rejected_ids):
        end = np.array([len(chosen_ids) - 1])
        return Aligned(end, end)
    return aligned(chosen_ids, rejected_ids)


def _ordered_share(score_S: NDArray[np.floating]) -> float:
    better, worse = np.triu_indices(len(score_S), 1)
    return float((score_S[better] > score_S[worse]).mean())
