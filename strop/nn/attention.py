"""One attention entry for trainer and engine: whoever runs the forward says how its tokens attend.

transformers hands keyword arguments of the forward down to the attention function, so the caller passes
`attend=` and no state is kept anywhere. Masks are the caller's business too: for an attention that is not
in transformers' mask table it builds none.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

# B rows, H query heads, K key heads, G query heads of a key head, T query tokens, S key tokens, D head size

NAME = "strop"
STRIP = 512
"""Queries of a long sequence that attend at once where no fused kernel knows the rule: their mask and
scores then grow with the length of the sequence, not with its square."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How the queries of one layer look at the keys of their own past."""

    scale: float
    window: int | None = None
    """A query sees as many positions, its own the last of them; None: its whole past."""
    softcap: float | None = None
    """Scores s become softcap · tanh(s / softcap); None: they stay."""


Attend = Callable[[int, Tensor, Tensor, Tensor, Rule], Tensor]
"""(layer, query_BHTD, key_BKTD, value_BKTD, rule) → output_BHTD; positions are already rotated in."""


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
    # Families without a window or a cap do not name them.
    rule = Rule(kwargs["scaling"], kwargs.get("sliding_window"), kwargs.get("softcap"))
    return attend(layer, query_BHTD, key_BKTD, value_BKTD, rule).transpose(1, 2), None


def register() -> None:
    """Make `attn_implementation="strop"` known to transformers; harmless when repeated."""
    from transformers import AttentionInterface  # takes seconds, and most models need none of it

    AttentionInterface.register(NAME, _dispatch)


def attention(  # noqa: PLR0913 - the operator as it is
    query_BHTD: Tensor,
    key_BKSD: Tensor,
    value_BKSD: Tensor,
    rule: Rule,
    *,
    mask: Tensor | None = None,
    is_causal: bool = False,
) -> Tensor:
    """Softmax attention with grouped key heads. `mask` is True where a query may look, the rule's window
    being in it (`within`); with `is_causal` queries and keys are one sequence, and the window is seen to."""
    if not is_causal:
        return _masked(query_BHTD, key_BKSD, value_BKSD, rule, mask)
    fits = rule.window is None or rule.window >= query_BHTD.shape[2]
    if rule.softcap is None and fits:
        return _fused(query_BHTD, key_BKSD, value_BKSD, rule.scale, is_causal=True)
    return _strips(query_BHTD, key_BKSD, value_BKSD, rule)


def within(query_positions: Tensor, key_positions: Tensor, window: int) -> Tensor:
    """[T, S], or [B, T, S] of [B, T] and [B, S]: True where the key is not too far in the query's past."""
    return key_positions[..., None, :] > query_positions[..., :, None] - window


def _strips(q_BHTD: Tensor, k_BKTD: Tensor, v_BKTD: Tensor, rule: Rule) -> Tensor:
    """Causal attention, some queries at a time, each strip with only the keys that it can see."""
    T = q_BHTD.shape[2]
    at_T = torch.arange(T)
    outs = []
    for start in range(0, T, STRIP):
        end = min(start + STRIP, T)
        first = 0 if rule.window is None else max(0, start + 1 - rule.window)
        queries, keys = slice(start, end), slice(first, end)
        mask = at_T[keys] <= at_T[queries, None]
        if rule.window is not None:
            mask &= within(at_T[queries], at_T[keys], rule.window)
        outs.append(_masked(q_BHTD[:, :, queries], k_BKTD[:, :, keys], v_BKTD[:, :, keys], rule, mask))
    return torch.cat(outs, 2)


def _masked(q_BHTD: Tensor, k_BKSD: Tensor, v_BKSD: Tensor, rule: Rule, mask: Tensor | None) -> Tensor:
    if rule.softcap is None:
        return _fused(q_BHTD, k_BKSD, v_BKSD, rule.scale, mask=mask)
    assert mask is not None, "without a mask a block is causal"
    if not torch.is_grad_enabled():
        return _capped(q_BHTD, k_BKSD, v_BKSD, rule, mask)
    # Scores, caps and probabilities of every layer would be kept for the backward pass.
    out: Tensor = checkpoint(
        _capped, q_BHTD, k_BKSD, v_BKSD, rule, mask, use_reentrant=False, preserve_rng_state=False
    )
    return out


def _fused(  # noqa: PLR0913 - the same
    q_BHTD: Tensor,
    k_BKSD: Tensor,
    v_BKSD: Tensor,
    scale: float,
    *,
    mask: Tensor | None = None,
    is_causal: bool = False,
) -> Tensor:
    return F.scaled_dot_product_attention(
        q_BHTD,
        k_BKSD,
        v_BKSD,
        attn_mask=mask,
        is_causal=is_causal,
        scale=scale,
        enable_gqa=q_BHTD.shape[1] != k_BKSD.shape[1],
    )


def _capped(q_BHTD: Tensor, k_BKSD: Tensor, v_BKSD: Tensor, rule: Rule, mask: Tensor) -> Tensor:
    """torch's own operator takes no cap: the products one by one, in float32 between them."""
    assert rule.softcap is not None
    B, H, T, D = q_BHTD.shape
    K, S = k_BKSD.shape[1:3]
    scores = q_BHTD.reshape(B, K, H // K * T, D) @ k_BKSD.transpose(2, 3)
    scores_BHTS = scores.view(B, H, T, S).to(torch.promote_types(scores.dtype, torch.float32)) * rule.scale
    scores_BHTS = rule.softcap * torch.tanh(scores_BHTS / rule.softcap)
    p_BHTS = torch.softmax(scores_BHTS.masked_fill(~mask, float("-inf")), -1).to(scores.dtype)
    return (p_BHTS.view(B, K, H // K * T, S) @ v_BKSD).view(B, H, T, D)
