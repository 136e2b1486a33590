"""Attention row by row in own code gives what attention by products gives."""

import numpy as np
import pytest
import torch
from cases import case

from strop.engines.local.capacity import BLOCK_TOKENS
from strop.nn import row_attention as own
from strop.nn.attention import Rule
from strop.nn.decoding_attention import Seen, decoding_attention
from strop.nn.row_attention import BLOCK
from strop.nn.shared_attention import Keys, Tail

RULE = Rule(0.3)


def by_dimension(*shape, generator):
    """[…, tokens, head size], with the tokens of a dimension side by side."""
    return torch.randn(*shape[:-2], shape[-1], shape[-2], generator=generator).transpose(-2, -1)


def keys_and_values(*shape, generator):
    return Keys(by_dimension(*shape, generator=generator), torch.randn(shape, generator=generator))


def test_blocks_of_the_cache_are_those_that_own_code_reads():
    assert BLOCK == BLOCK_TOKENS


def some_rows(prefixes, own_tokens, *, query_heads=3, key_heads=2, head_dim=16, seed=0):
    """Rows in two tails, whose blocks lie in no order; the queries, what they look at, and where it lies."""
    rng = np.random.default_rng(seed)
    generator = torch.Generator().manual_seed(seed)
    of_row = rng.integers(0, len(prefixes), len(own_tokens))
    tails, tail_keys = [], []
    for lengths in np.array_split(np.array(own_tokens), 2):
        blocks = rng.permutation([(r, t) for r, n in enumerate(lengths) for t in range(0, n, BLOCK)])
        tails.append(Tail(lengths, blocks[:, 0].copy(), blocks[:, 1].copy()))
        shape = len(blocks), key_heads, BLOCK, head_dim
        tail_keys.append(keys_and_values(*shape, generator=generator))
    shape = len(prefixes), key_heads, -(-max(prefixes) // BLOCK) * BLOCK, head_dim
    shared = keys_and_values(*shape, generator=generator)
    query_BHD = torch.randn(len(own_tokens), query_heads * key_heads, head_dim, generator=generator)
    return query_BHD, shared, tail_keys, Seen(of_row, np.array(prefixes), tails)


def both_ways(monkeypatch, rows, rule=RULE):
    """By products in float64, and by row."""
    query_BHD, shared, tails, seen = rows
    wide = [Keys(tail.keys.double(), tail.values.double()) for tail in tails]
    wide_shared = Keys(shared.keys.double(), shared.values.double())
    expected = decoding_attention(query_BHD.double(), wide_shared, wide, seen, rule)
    monkeypatch.setattr(own, "is_measured", lambda: True)
    monkeypatch.setattr(own, "LEAST", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    assert own.is_by_row(query_BHD, shared, tails[0], rule)
    return expected.float(), decoding_attention(query_BHD, shared, tails, seen, rule)


def test_rows_see_what_products_see(monkeypatch):
    cases = [
        ([5], [1, 1]),
        ([16, 31, 1], [16, 17, 1, 40, 3]),
        ([100, 3, 48], [200, 1, 15, 33, 16, 2, 64]),
    ]
    for prefixes, own_tokens in cases:
        for query_heads, head_dim in ((1, 8), (2, 24), (3, 64), (4, 32), (6, 16), (7, 64), (9, 8), (16, 16)):
            rows = some_rows(prefixes, own_tokens, query_heads=query_heads, head_dim=head_dim)
            expected, found = both_ways(monkeypatch, rows)
            with case(prefixes, own_tokens, query_heads, head_dim):
                torch.testing.assert_close(found, expected, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("size", [1e-3, 1.0, 30.0, 1e4])
def test_scores_of_any_size_have_an_exact_softmax(monkeypatch, size):
    query_BHD, *others = some_rows([100, 3], [20, 1, 50])
    expected, found = both_ways(monkeypatch, (query_BHD * size, *others))
    torch.testing.assert_close(found, expected, rtol=2e-3 if size > 30 else 1e-5, atol=1e-5)


def test_what_lies_behind_the_last_key_is_not_seen(monkeypatch):
    query_BHD, shared, tails, seen = rows = some_rows([5, 20], [3, 17, 1])
    _, before = both_ways(monkeypatch, rows)
    for prefix, length in enumerate([5, 20]):
        shared.keys[prefix, :, length:] = 1e30
        shared.values[prefix, :, length:] = 1e30
    for tail, where in zip(tails, seen.tails, strict=True):
        for block, (row, first) in enumerate(zip(where.row_of, where.first, strict=True)):
            tail.keys[block, :, max(0, where.lengths[row] - first) :] = torch.nan
            tail.values[block, :, max(0, where.lengths[row] - first) :] = torch.nan
    assert torch.equal(decoding_attention(query_BHD, shared, tails, seen, RULE), before)


def test_nan_is_not_hidden(monkeypatch):
    query_BHD, shared, tails, seen = some_rows([5, 20], [3, 17, 1])
    query_BHD[1, 2, 3] = torch.nan
    _, found = both_ways(monkeypatch, (query_BHD, shared, tails, seen))
    assert found.isnan().any(-1).nonzero().tolist() == [[1, 2]]


def test_windows_caps_and_other_types_go_by_products(monkeypatch):
    query_BHD, shared, tails, _ = some_rows([5], [1, 2], query_heads=8)
    monkeypatch.setattr(own, "is_measured", lambda: True)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    token_by_token = Keys(shared.keys.contiguous(), shared.values)
    assert own.is_by_row(query_BHD, shared, tails[0], RULE)
    for query, keys, rule in (
        (query_BHD, shared, Rule(0.3, window=4)),
        (query_BHD, shared, Rule(0.3, softcap=2.0)),
        (query_BHD.bfloat16(), shared, RULE),
        (query_BHD[..., :12], shared, RULE),
        (query_BHD[:, :15], shared, RULE),
        (query_BHD, token_by_token, RULE),
        (query_BHD, Keys(shared.keys, shared.values.transpose(1, 2).contiguous().transpose(1, 2)), RULE),
    ):
        with case(query.dtype, query.shape, rule):
            assert not own.is_by_row(query, keys, tails[0], rule)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert not own.is_by_row(query_BHD, shared, tails[0], RULE)
