"""Logits of next tokens: the product with the head, a small model's largest matrix, some rows at a time."""

import torch
from torch import Tensor

from strop.nn.product import columns, product, wide_type

# N tokens, D hidden size, V vocabulary

ROWS = 1024
"""Of the head, at once: what they are widened to, and what they give, stays in the caches."""


def next_logits(hidden_ND: Tensor, head_VD: Tensor, softcap: float | None) -> Tensor:
    """[N, V] in float32 or wider, with the logits of one id side by side in memory: `product`'s layout. Not
    differentiable."""
    x_DN = columns(hidden_ND)
    logits_VN = torch.empty(len(head_VD), len(hidden_ND), dtype=wide_type(head_VD.dtype))
    for part_VD, out_VN in zip(head_VD.split(ROWS), logits_VN.split(ROWS), strict=True):
        product(part_VD, x_DN, out_ON=out_VN)
    if softcap is not None:  # x becomes cap · tanh(x / cap)
        logits_VN.div_(softcap).tanh_().mul_(softcap)
    return logits_VN.t()
