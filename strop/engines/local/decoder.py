"""The forward passes of the engine: prefill of prompts end to end, and one token for every row."""

from collections.abc import Sequence
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from strop.engines.local.cache import KVCache
from strop.nn.attention import Rule, attention, decode_attention, decode_mask
from strop.nn.loading import CausalLM

# B rows, T tokens, H query heads, K key heads, D head size, V vocabulary

PREFILL_TOKENS = 2048
"""Prompts are prefilled together up to about this many tokens: enough for full matrix-product speed."""


class Decoder:
    """Turns ids into next-token logits and keeps the cache in step."""

    def __init__(self, model: CausalLM) -> None:
        self.model = model
        self.cache = KVCache(
            layers=model.num_layers, heads=model.num_kv_heads, head_dim=model.head_dim, dtype=model.dtype
        )

    def prefill(self, prompts: Sequence[NDArray[np.int32]], rows: Sequence[int]) -> Tensor:
        """Write each prompt's keys and values to its row; next-token logits [len(prompts), V]."""
        logits: list[Tensor] = []
        start = 0
        while start < len(prompts):
            stop, tokens = start, 0
            while stop < len(prompts) and (tokens == 0 or tokens + len(prompts[stop]) <= PREFILL_TOKENS):
                tokens, stop = tokens + len(prompts[stop]), stop + 1
            logits.append(self._prefill(prompts[start:stop], rows[start:stop]))
            start = stop
        return torch.cat(logits)

    def _prefill(self, prompts: Sequence[NDArray[np.int32]], rows: Sequence[int]) -> Tensor:
        ends = np.cumsum([len(p) for p in prompts]).tolist()
        spans = [slice(end - len(p), end) for p, end in zip(prompts, ends, strict=True)]

        def attend(layer: int, q_BHTD: Tensor, k_BKTD: Tensor, v_BKTD: Tensor, rule: Rule) -> Tensor:
            out_BHTD = torch.empty_like(q_BHTD)
            for span, row in zip(spans, rows, strict=True):
                q, k, v = q_BHTD[:, :, span], k_BKTD[:, :, span], v_BKTD[:, :, span]
                out_BHTD[:, :, span] = attention(q, k, v, rule, is_causal=True)
                self.cache.keys[layer][row, :, : k.shape[2]] = k[0]
                self.cache.values[layer][row, :, : v.shape[2]] = v[0]
            return out_BHTD

        ids_BT = torch.from_numpy(np.concatenate(prompts).astype(np.int64))[None]
        positions_BT = torch.cat([torch.arange(len(p)) for p in prompts])[None]
        hidden_BTD = self.model.trunk(ids_BT, positions_BT, attend)
        return self.model.logits(hidden_BTD[0, torch.tensor(ends) - 1])

    def decode(self, ids: NDArray[np.int64], positions: NDArray[np.int64]) -> Tensor:
        """Feed one token to each of rows 0 … B − 1, at its position; next-token logits [B, V]."""
        num_rows, shortest, longest = len(ids), int(positions.min()) + 1, int(positions.max()) + 1
        at_B = torch.from_numpy(positions)
        rows_B = torch.arange(num_rows)

        @cache  # layers share it, as they have one window or none
        def seen(window: int | None) -> tuple[slice, Tensor]:
            first = 0 if window is None else max(0, shortest - window)
            return slice(first, longest), decode_mask(at_B, range(first, longest), window=window)

        def attend(layer: int, q_BH1D: Tensor, k_BK1D: Tensor, v_BK1D: Tensor, rule: Rule) -> Tensor:
            keys, values = self.cache.keys[layer], self.cache.values[layer]
            keys[rows_B, :, at_B] = k_BK1D[:, :, 0]
            values[rows_B, :, at_B] = v_BK1D[:, :, 0]
            at, mask_B11S = seen(rule.window)
            seen_k, seen_v = keys[:num_rows, :, at], values[:num_rows, :, at]
            return decode_attention(q_BH1D, seen_k, seen_v, rule, mask_B11S=mask_B11S)

        hidden_B1D = self.model.trunk(torch.from_numpy(ids)[:, None], at_B[:, None], attend)
        return self.model.logits(hidden_B1D[:, 0])
