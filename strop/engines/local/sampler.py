"""Drawing tokens: inverse CDF from one counter-based uniform a token, and the log-prob of what was drawn."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.errors import EngineFailed
from strop.randomness import uniforms

# B sequences, V vocabulary


class Drawn(NamedTuple):
    ids: NDArray[np.int64]
    logp: NDArray[np.float32]


def draw(
    logits_BV: Tensor,
    *,
    temperatures: NDArray[np.float64],
    seeds: NDArray[np.uint64],
    positions: NDArray[np.int64],
) -> Drawn:
    """One token a row from softmax(logits / temperature), and its log-prob under that distribution.

    Temperature 0 takes the likeliest token and reports its log-prob at temperature 1. `positions` are the
    absolute positions of the new tokens. Raises EngineFailed when a row has no finite distribution.
    """
    greedy = temperatures == 0
    scale = torch.from_numpy(np.where(greedy, 1.0, temperatures).astype(np.float32))
    logits_BV = logits_BV.float() / scale[:, None]
    top_B1 = logits_BV.amax(-1, keepdim=True)
    if not torch.isfinite(top_B1).all():
        raise EngineFailed(
            "the model's logits are not finite: its weights are broken; lower train.optim.lr, or get the "
            "model anew"
        )
    # float64: a float32 running sum over a large vocabulary is off by more than rare tokens weigh
    cdf_BV = (logits_BV - top_B1).exp().double().cumsum(-1)
    total_B1 = cdf_BV[:, -1:]
    noise_B1 = torch.from_numpy(uniforms(seeds, positions))[:, None] * total_B1
    # right=True: the first entry above the noise, which always has a probability above 0
    ids_B1 = torch.searchsorted(cdf_BV, noise_B1, right=True).clamp_(max=logits_BV.shape[1] - 1)
    if greedy.any():
        ids_B1 = torch.where(torch.from_numpy(greedy)[:, None], logits_BV.argmax(-1, keepdim=True), ids_B1)
    logp_B = (logits_BV.gather(1, ids_B1) - top_B1 - total_B1.log())[:, 0]
    return Drawn(ids_B1[:, 0].numpy(), logp_B.clamp_(max=0).float().numpy())
