"""The forward passes of the engine: prefixes end to end, and one token for every row."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.engines.local.blocks import Blocks
from strop.engines.local.cache import KVCache
from strop.engines.local.prefixes import Part, Prefix, parts_of
from strop.nn.attention import Rule, attention, within
from strop.nn.decoding_attention import Seen, decoding_attention
from strop.nn.loading import CausalLM
from strop.nn.own_code import is_measured
from strop.nn.shared_attention import Keys

# B rows, T tokens, H query heads, K key heads, D head size, V vocabulary

PREFILL_TOKENS = 2048
"""Prompts are prefilled together up to about this many tokens: enough for full matrix-product speed."""


class Decoder:
    """Turns ids into next-token logits and keeps the caches in step: of prefixes, by slot, and of what
    sequences added to them, by row of one of `num_pools` pools, any of which may hold `max_tokens`."""

    def __init__(self, model: CausalLM, *, num_pools: int, max_tokens: int) -> None:
        self.model = model
        form: dict[str, Any] = {
            "layers": model.num_layers,
            "heads": model.num_kv_heads,
            "head_dim": model.head_dim,
            "dtype": model.dtype,
        }
        self.prefixes = KVCache(**form)
        self.own = [Blocks(**form, max_tokens=max_tokens) for _ in range(num_pools)]

    @property
    def computes_alone(self) -> bool:
        """Whether one thread decodes a few rows faster than a team: in own code."""
        return self.model.is_fused and is_measured()

    @property
    def tokens(self) -> int:
        """That the caches take memory for."""
        return self.prefixes.tokens + sum(blocks.tokens for blocks in self.own)

    def clear(self) -> None:
        """Give the memory of the caches back."""
        self.prefixes.clear()
        for blocks in self.own:
            blocks.clear()

    def prefill(self, new: Sequence[Prefix], known: Sequence[Prefix]) -> None:
        """Compute the keys, values and last hidden states of `new`; `known` are in the cache."""
        for parts in parts_of(new, known):
            for some in _portions(parts):
                self._prefill(some)

    def _prefill(self, parts: Sequence[Part]) -> None:
        sizes = [part.num_tokens for part in parts]
        masks = [_mask(part) for part in parts]

        def attend(layer: int, q_BHTD: Tensor, k_BKTD: Tensor, v_BKTD: Tensor, rule: Rule) -> Tensor:
            queries, keys, values = q_BHTD.split(sizes, 2), k_BKTD.split(sizes, 2), v_BKTD.split(sizes, 2)
            outs = []
            for part, mask, q, k, v in zip(parts, masks, queries, keys, values, strict=True):
                self._put(layer, part, k[0], v[0])
                if mask is None:
                    outs.append(attention(q, k, v, rule, is_causal=True))
                    continue
                slot, length = part.prefix.slot, len(part.prefix.ids)
                all_k = self.prefixes.keys[layer][None, slot, :, :length].contiguous()
                all_v = self.prefixes.values[layer][None, slot, :, :length]
                outs.append(attention(q, all_k, all_v, rule, mask=_windowed(mask, part, rule.window)))
            return torch.cat(outs, 2)

        ids_BT = torch.from_numpy(np.concatenate([p.prefix.ids[p.shared :] for p in parts]).astype(np.int64))[
            None
        ]
        positions_BT = torch.cat([torch.arange(p.shared, len(p.prefix.ids)) for p in parts])[None]
        hidden_BTD = self.model.trunk(ids_BT, positions_BT, attend)
        for part, end in zip(parts, np.cumsum(sizes).tolist(), strict=True):
            part.prefix.hidden_D = hidden_BTD[0, end - 1].clone()

    def _put(self, layer: int, part: Part, keys_KTD: Tensor, values_KTD: Tensor) -> None:
        for cache, new in ((self.prefixes.keys, keys_KTD), (self.prefixes.values, values_KTD)):
            row = cache[layer][part.prefix.slot]
            if part.source is not None:
                row[:, : part.shared] = cache[layer][part.source.slot, :, : part.shared]
            row[:, part.shared : len(part.prefix.ids)] = new

    def after_prefixes(self, prefixes: Sequence[Prefix]) -> Tensor:
        """Logits [len(prefixes), V] of the token that follows each, which is computed."""
        return self.model.logits(torch.stack([p.hidden_D for p in prefixes if p.hidden_D is not None]))

    def decode(
        self,
        pools: Sequence[int],
        ids: NDArray[np.int64],
        prefix_of_row: NDArray[np.int64],
        lengths: NDArray[np.int64],
    ) -> Tensor:
        """Feed one token to each of the B rows of `pools`, in their order; the next one's logits [B, V].
        `lengths` are those of the prefixes in slots 0 … S − 1. Threads may do so side by side, each for pools
        of its own."""
        own = [self.own[pool] for pool in pools]
        fed = [blocks.feed() for blocks in own]
        seen = Seen(prefix_of_row, lengths, [new.tail for new in fed])

        def attend(layer: int, q_BH1D: Tensor, k_BK1D: Tensor, v_BK1D: Tensor, rule: Rule) -> Tensor:
            tails = []
            for blocks, new, part in zip(own, fed, seen.parts, strict=True):
                blocks.put(layer, new, k_BK1D[part, :, 0], v_BK1D[part, :, 0])
                num = len(new.tail.row_of)
                tails.append(Keys(blocks.keys[layer][:num], blocks.values[layer][:num]))
            num_slots = len(lengths)
            prefixes = Keys(self.prefixes.keys[layer][:num_slots], self.prefixes.values[layer][:num_slots])
            return decoding_attention(q_BH1D[:, :, 0], prefixes, tails, seen, rule)[:, :, None]

        own_B = np.concatenate([new.tail.lengths for new in fed]) - 1
        positions_B1 = torch.from_numpy(lengths[prefix_of_row] + own_B)[:, None]
        hidden_B1D = self.model.trunk(torch.from_numpy(ids)[:, None], positions_B1, attend)
        return self.model.logits(hidden_B1D[:, 0])


def _portions(parts: Sequence[Part]) -> Iterator[Sequence[Part]]:
    start = 0
    while start < len(parts):
        stop, tokens = start, 0
        while stop < len(parts) and (tokens == 0 or tokens + parts[stop].num_tokens <= PREFILL_TOKENS):
            tokens, stop = tokens + parts[stop].num_tokens, stop + 1
        yield parts[start:stop]
        start = stop


def _mask(part: Part) -> Tensor | None:
    """Of tokens that look back at shared ones; None: the part is the whole prefix, and causal."""
    if part.source is None:
        return None
    return torch.ones(part.num_tokens, len(part.prefix.ids), dtype=torch.bool).tril(part.shared)


def _windowed(mask: Tensor, part: Part, window: int | None) -> Tensor:
    if window is None:
        return mask
    positions = torch.arange(len(part.prefix.ids))
    return mask & within(positions[part.shared :], positions, window)
