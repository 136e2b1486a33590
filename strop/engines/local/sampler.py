"""Drawing tokens: inverse CDF from one counter-based uniform a token, and the log-prob of what was drawn."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from strop.engines.local.truncation import Rows, choose
from strop.errors import EngineFailed
from strop.randomness import uniforms
from strop.sample import Sampling

# B sequences, V vocabulary, N blocks of C ids

_BLOCK = 128
_AT_ONCE = 2048
"""Ids whose weights are made and summed before the next: they stay in the cache meanwhile."""
_LOG2_E = 1 / math.log(2)


@dataclass(frozen=True, slots=True)
class Drawn:
    """One token a row."""

    ids: NDArray[np.int64]
    logp: NDArray[np.float32]
    kept: dict[int, NDArray[np.int32]] = field(default_factory=dict)
    """By row: the ids that it was drawn from, ascending; without the rows that draw from all."""


def draw(
    logits_BV: Tensor,
    *,
    samplings: Sequence[Sampling],
    seeds: NDArray[np.uint64],
    positions: NDArray[np.int64],
) -> Drawn:
    """One token a row from softmax(logits / temperature), or from the part of it that the row's sampling
    keeps, and its log-prob under that distribution.

    Temperature 0 takes the likeliest token and reports its log-prob at temperature 1. `positions` are the
    absolute positions of the new tokens. It is fastest where the logits of one id lie side by side in memory.
    Raises EngineFailed when a row has no finite distribution.
    """
    temperatures = np.array([sampling.temperature for sampling in samplings])
    greedy = temperatures == 0
    scale = torch.from_numpy(np.where(greedy, 1.0, temperatures).astype(np.float32))
    logits_BV = logits_BV.float()
    if (temperatures[~greedy] != 1).any():
        logits_BV = logits_BV / scale[:, None]
    blocks = _Blocks.of(logits_BV.t())
    if not torch.isfinite(blocks.top_B).all():
        raise EngineFailed(
            "the model's logits are not finite: its weights are broken; lower train.optim.lr, or get the "
            "model anew"
        )
    noise_B = torch.from_numpy(uniforms(seeds, positions))
    ids_B, total_B = blocks.inverse_cdf(noise_B)
    if greedy.any():
        ids_B = torch.where(torch.from_numpy(greedy), blocks.likeliest(), ids_B)
    logp_B = logits_BV.gather(1, ids_B[:, None])[:, 0] - blocks.top_B - total_B.log()
    drawn = Drawn(ids_B.numpy(), logp_B.clamp_(max=0).float().numpy())
    cut = [row for row, sampling in enumerate(samplings) if not sampling.keeps_all]
    if cut:
        every = len(cut) == len(samplings)
        part = Rows(
            logits_BV=(logits_BV if every else logits_BV[cut]).contiguous(),
            total_B=total_B[cut].numpy(),
            samplings=[samplings[row] for row in cut],
            noise_B=noise_B[cut].numpy(),
        )
        for row, choice in zip(cut, choose(part), strict=True):
            drawn.ids[row], drawn.logp[row], drawn.kept[row] = choice.id, choice.logp, choice.kept
    return drawn


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Logits in blocks of ids, so that only one block a row is gone through id by id."""

    logits_VB: Tensor
    tops_NB: Tensor
    """Largest logit of each block."""
    top_B: Tensor

    @classmethod
    def of(cls, logits_VB: Tensor) -> "_Blocks":
        tops_NB = _by_block(logits_VB, torch.amax)
        return cls(logits_VB, tops_NB, tops_NB.amax(0))

    def likeliest(self) -> Tensor:
        """[B]"""
        block_B = self.tops_NB.argmax(0)
        return block_B * _BLOCK + self._block(block_B).argmax(0)

    def inverse_cdf(self, noise_B: Tensor) -> tuple[Tensor, Tensor]:
        """The first id whose running sum of weights exceeds noise · total, and the total; [B] each.

        Running sums are float64: in float32 they are off by more than rare tokens weigh.
        """
        sums = [_by_block(self._weights(part), torch.sum) for part in self.logits_VB.split(_AT_ONCE)]
        cdf_BN = torch.cat(sums).t().double().cumsum(-1)
        total_B = cdf_BN[:, -1]
        aim_B1 = (noise_B * total_B)[:, None]
        # right=True: the first entry above the aim, so a block or an id without weight is never chosen
        block_B1 = torch.searchsorted(cdf_BN, aim_B1, right=True).clamp_(max=cdf_BN.shape[1] - 1)
        before_B1 = F.pad(cdf_BN, (1, 0)).gather(1, block_B1)
        inner_BC = self._weights(self._block(block_B1[:, 0])).t().double().cumsum(-1)
        # The block's sum and the last running sum may differ by rounding; the aim must stay below the latter.
        rest_B1 = torch.minimum(aim_B1 - before_B1, inner_BC[:, -1:] * (1 - 1e-15))
        return (block_B1 * _BLOCK + torch.searchsorted(inner_BC, rest_B1, right=True))[:, 0], total_B

    def _weights(self, logits_VB: Tensor) -> Tensor:
        """exp(logit − largest), by powers of 2: those take half the time of powers of e. The difference comes
        first: it is exact near the largest, however large that is."""
        return torch.sub(logits_VB, self.top_B).mul_(_LOG2_E).exp2_()

    def _block(self, block_B: Tensor) -> Tensor:
        """[C, B], −∞ beyond the vocabulary."""
        ids_CB = block_B * _BLOCK + torch.arange(_BLOCK)[:, None]
        beyond_CB = ids_CB >= len(self.logits_VB)
        found_CB = self.logits_VB.gather(0, ids_CB.masked_fill(beyond_CB, 0))
        return found_CB.masked_fill_(beyond_CB, -torch.inf)


def _by_block(x_VB: Tensor, reduced: Callable[[Tensor, int], Tensor]) -> Tensor:
    """[N, B]; the last block may be shorter."""
    whole = len(x_VB) // _BLOCK * _BLOCK
    found = [reduced(x_VB[:whole].unflatten(0, (-1, _BLOCK)), 1)] if whole else []
    if whole < len(x_VB):
        found.append(reduced(x_VB[whole:], 0)[None])
    return torch.cat(found)
