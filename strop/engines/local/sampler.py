"""Drawing tokens: inverse CDF from one counter-based uniform a token, and the log-prob of what was drawn."""

from collections.abc import Sequence
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
_ROWS_AT_ONCE = 16
"""Rows whose weights are made, summed and drawn from before the next: they stay in the cache meanwhile."""


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
    absolute positions of the new tokens. Raises EngineFailed when a row has no finite distribution.
    """
    temperatures = np.array([sampling.temperature for sampling in samplings])
    greedy = temperatures == 0
    scale = torch.from_numpy(np.where(greedy, 1.0, temperatures).astype(np.float32))
    logits_BV = logits_BV.float()
    if (temperatures[~greedy] != 1).any():
        logits_BV = logits_BV / scale[:, None]
    top_B1 = logits_BV.amax(-1, keepdim=True)
    if not torch.isfinite(top_B1).all():
        raise EngineFailed(
            "the model's logits are not finite: its weights are broken; lower train.optim.lr, or get the "
            "model anew"
        )
    noise_B = torch.from_numpy(uniforms(seeds, positions))
    parts = zip(*(t.split(_ROWS_AT_ONCE) for t in (logits_BV, top_B1, noise_B)), strict=True)
    found = [_inverse_cdf((logits - top).exp_(), noise) for logits, top, noise in parts]
    ids_B1, total_B1 = (torch.cat(column) for column in zip(*found, strict=True))
    if greedy.any():
        ids_B1 = torch.where(torch.from_numpy(greedy)[:, None], logits_BV.argmax(-1, keepdim=True), ids_B1)
    logp_B = (logits_BV.gather(1, ids_B1) - top_B1 - total_B1.log())[:, 0]
    drawn = Drawn(ids_B1[:, 0].numpy(), logp_B.clamp_(max=0).float().numpy())
    cut = [row for row, sampling in enumerate(samplings) if not sampling.keeps_all]
    if cut:
        every = len(cut) == len(samplings)
        part = Rows(
            logits_BV=logits_BV if every else logits_BV[cut],
            total_B=total_B1[cut, 0].numpy(),
            samplings=[samplings[row] for row in cut],
            noise_B=noise_B[cut].numpy(),
        )
        for row, choice in zip(cut, choose(part), strict=True):
            drawn.ids[row], drawn.logp[row], drawn.kept[row] = choice.id, choice.logp, choice.kept
    return drawn


def _inverse_cdf(weight_BV: Tensor, noise_B: Tensor) -> tuple[Tensor, Tensor]:
    """The first id whose running sum of weights exceeds noise · total, and the total; [B, 1] each.

    Sums are float64: a float32 running sum over a large vocabulary is off by more than rare tokens weigh.
    First the block is found, then the id in it, so that only one block a row is summed id by id.
    """
    num_blocks = -(-weight_BV.shape[1] // _BLOCK)
    padded_BV = F.pad(weight_BV, (0, num_blocks * _BLOCK - weight_BV.shape[1]))
    blocks_BNC = padded_BV.view(len(weight_BV), num_blocks, _BLOCK)
    cdf_BN = blocks_BNC.sum(-1, dtype=torch.float64).cumsum(-1)
    total_B1 = cdf_BN[:, -1:]
    aim_B1 = noise_B[:, None] * total_B1
    # right=True: the first entry above the aim, so a block or an id without weight is never chosen
    block_B1 = torch.searchsorted(cdf_BN, aim_B1, right=True).clamp_(max=num_blocks - 1)
    before_B1 = F.pad(cdf_BN, (1, 0)).gather(1, block_B1)
    inner_BC = blocks_BNC[torch.arange(len(weight_BV)), block_B1[:, 0]].double().cumsum(-1)
    # The block's sum and the last running sum may differ in the last bit; the aim must stay below the latter.
    rest_B1 = torch.minimum(aim_B1 - before_B1, inner_BC[:, -1:] * (1 - 1e-15))
    return block_B1 * _BLOCK + torch.searchsorted(inner_BC, rest_B1, right=True), total_B1
