"""One attention entry for trainer and engine: whoever runs the forward says how its tokens attend.

transformers hands keyword arguments of the forward down to the attention function, so the caller passes
`attend=` and no state is kept anywhere. Masks are the caller's business too: for an attention that is not
in transformers' mask table it builds none.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AttentionInterface

# B rows, H query heads, K key heads, T query tokens, S key tokens, D head size

NAME = "strop"

Attend = Callable[[int, Tensor, Tensor, Tensor, float], Tensor]
"""(layer, query_BHTD, key_BKTD, value_BKTD, scale) → output_BHTD; positions are already rotated in."""


def _dispatch(
    module: nn.Module,
    query_BHTD: Tensor,
    key_BKTD: Tensor,
    value_BKTD: Tensor,
    attention_mask: None,  # noqa: ARG001 - the interface's signature
    **kwargs: Any,
) -> tuple[Tensor, None]:
    attend: Attend = kwargs["attend"]
    layer: int = module.layer_idx  # type: ignore[assignment]
    out_BHTD = attend(layer, query_BHTD, key_BKTD, value_BKTD, kwargs["scaling"])
    return out_BHTD.transpose(1, 2), None


def register() -> None:
    """Make `attn_implementation="strop"` known to transformers; harmless when repeated."""
    AttentionInterface.register(NAME, _dispatch)


def attention(  # noqa: PLR0913 - the operator as it is
    query_BHTD: Tensor,
    key_BKSD: Tensor,
    value_BKSD: Tensor,
    scale: float,
    *,
    mask: Tensor | None = None,
    is_causal: bool = False,
) -> Tensor:
    """Softmax attention with grouped key heads; `mask` is True where a query may look."""
    return F.scaled_dot_product_attention(
        query_BHTD,
        key_BKSD,
        value_BKSD,
        attn_mask=mask,
        is_causal=is_causal,
        scale=scale,
        enable_gqa=query_BHTD.shape[1] != key_BKSD.shape[1],
    )


def decode_attention(
    query_BH1D: Tensor, key_BKSD: Tensor, value_BKSD: Tensor, scale: float, *, mask_B11S: Tensor
) -> Tensor:
    """One query token a row. The heads that share a key head become its query tokens: no key is repeated."""
    B, H, _, D = query_BH1D.shape
    K = key_BKSD.shape[1]
    grouped_BKGD = query_BH1D.reshape(B, K, H // K, D)
    out = F.scaled_dot_product_attention(grouped_BKGD, key_BKSD, value_BKSD, attn_mask=mask_B11S, scale=scale)
    return out.reshape(B, H, 1, D)


def causal_rows(starts: Tensor, num_keys: int) -> Tensor:
    """[B, 1, 1, num_keys] mask: row b sees keys 0 … starts[b]."""
    return (torch.arange(num_keys) <= starts[:, None])[:, None, None, :]
