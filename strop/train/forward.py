"""From a packed micro-batch to log-probs, entropies and values of its sampled tokens."""

from functools import cache

import torch
from torch import Tensor

from strop.nn.attention import Rule, attention, within
from strop.nn.loading import CausalLM
from strop.nn.logprobs import Distribution, TokenStats, token_stats
from strop.nn.value_head import ValueHead
from strop.train.packing import Packed

# B = 1 row, H query heads, K key heads, T tokens, D head or hidden size, S samples


def packed_stats(model: CausalLM, packed: Packed, *, temperature: float, dtype: torch.dtype) -> TokenStats:
    """log-prob and entropy [N] in float32; differentiable. `dtype` is of the computation: with bfloat16,
    products run in it while the weights stay as they are."""
    hidden_TD = packed_hidden(model, packed, dtype=dtype)
    return stats_of(model, hidden_TD, packed, temperature=temperature, dtype=dtype)


def stats_of(
    model: CausalLM, hidden_TD: Tensor, packed: Packed, *, temperature: float, dtype: torch.dtype
) -> TokenStats:
    """The same from the trunk's hidden states."""
    return token_stats(
        hidden_TD.index_select(0, torch.from_numpy(packed.predecessors)).to(dtype),
        model.head_VD.to(dtype),
        torch.from_numpy(packed.targets),
        Distribution(temperature, model.final_softcap, packed.kept),
    )


def values_of(head: ValueHead, hidden_TD: Tensor, packed: Packed) -> Tensor:
    """[N] values of the states in which the sampled tokens were drawn: what is expected before each."""
    return head(hidden_TD.index_select(0, torch.from_numpy(packed.predecessors)))


def end_values_of(head: ValueHead, hidden_TD: Tensor, packed: Packed) -> Tensor:
    """[S] values of the states in which the samples of a `whole` packing end. The last token is found by its
    place: a search for the padding id would end at the first end-of-turn where the two ids are one."""
    return head(hidden_TD.index_select(0, torch.from_numpy(packed.ends)))


def packed_hidden(model: CausalLM, packed: Packed, *, dtype: torch.dtype) -> Tensor:
    """[T, D] hidden states of a micro-batch after the trunk's last norm; differentiable."""
    sizes = [block.num_rows for block in packed.blocks]

    @cache  # layers share them, as they have one window or none
    def masks(window: int | None) -> list[Tensor | None]:
        return _masks(packed, sizes, window)

    def attend(layer: int, q_BHTD: Tensor, k_BKTD: Tensor, v_BKTD: Tensor, rule: Rule) -> Tensor:  # noqa: ARG001
        # split, not slices: the gradient of a split is one concatenation, of each slice a tensor of zeros
        queries, keys, values = q_BHTD.split(sizes, 2), k_BKTD.split(sizes, 2), v_BKTD.split(sizes, 2)
        outs = []
        for i, (block, mask) in enumerate(zip(packed.blocks, masks(rule.window), strict=True)):
            k, v = keys[i], values[i]
            if block.prefixes:
                k = torch.cat([*(keys[p] for p in block.prefixes), k], 2)
                v = torch.cat([*(values[p] for p in block.prefixes), v], 2)
            outs.append(attention(queries[i], k, v, rule, mask=mask, is_causal=mask is None))
        return torch.cat(outs, 2)

    ids_BT, positions_BT = torch.from_numpy(packed.ids)[None], torch.from_numpy(packed.positions)[None]
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype is torch.bfloat16):
        return model.trunk(ids_BT, positions_BT, attend)[0]


def _masks(packed: Packed, sizes: list[int], window: int | None) -> list[Tensor | None]:
    """Of each block, with the window; None: the block is causal. Neighbours in a block may be far apart in
    their sequence, so windows go by positions."""
    positions = torch.from_numpy(packed.positions).split(sizes)
    masks: list[Tensor | None] = []
    for block, own in zip(packed.blocks, positions, strict=True):
        mask = None if block.mask is None else torch.from_numpy(block.mask)
        if mask is not None and window is not None:
            keys = torch.cat([*(positions[p] for p in block.prefixes), own])
            mask = mask & within(own, keys, window)
        masks.append(mask)
    return masks
