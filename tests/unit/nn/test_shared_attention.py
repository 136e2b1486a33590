"""Decoding attention over shared prefixes, against each row alone."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from strop.nn.attention import Rule
from strop.nn.product import multiplies_bfloat16
from strop.nn.shared_attention import Keys, Tail, rows_at, shared_attention

HEADS, KEY_HEADS, SIZE, BLOCK = 6, 2, 4, 2


def tail_of(lengths) -> Tail:
    """The blocks of rows of so many tokens, in no order."""
    blocks = [(row, first) for row, length in enumerate(lengths) for first in range(0, length, BLOCK)]
    row_of, first = np.array(blocks[1::2] + blocks[::2], np.int64).reshape(-1, 2).T
    return Tail(np.asarray(lengths, np.int64), row_of, first)


def alone(query_HD, key_KTD, value_KTD, rule: Rule) -> torch.Tensor:
    """One query at the last of T keys, written out."""
    outs = []
    for head, q_D in enumerate(query_HD):
        keys, values = (t[head // (HEADS // KEY_HEADS)] for t in (key_KTD, value_KTD))
        scores = keys @ q_D * rule.scale
        if rule.softcap is not None:
            scores = rule.softcap * torch.tanh(scores / rule.softcap)
        if rule.window is not None:
            scores[: max(0, len(scores) - rule.window)] = -torch.inf
        outs.append(torch.softmax(scores, 0) @ values)
    return torch.stack(outs)


@given(
    lengths=st.lists(st.integers(1, 7), min_size=1, max_size=5),
    window=st.sampled_from([None, 2, 5]),
    softcap=st.sampled_from([None, 1.5]),
    seed=st.integers(0, 99),
    crowd=st.sampled_from([0, 0, 9]),
)
@settings(deadline=None)
def test_every_row_sees_its_prefix_and_its_own_tokens_alone(lengths, window, softcap, seed, crowd):
    rng, rule = np.random.default_rng(seed), Rule(0.7, window, softcap)
    prefixes = np.array(lengths)
    of_row = np.concatenate(
        [rng.permutation(len(lengths)), rng.integers(0, len(lengths), 3), np.zeros(crowd, int)]
    )
    own = rng.integers(1, 6, len(of_row))
    tails = [tail_of(part) for part in np.split(own, [len(own) // 2]) if len(part)]
    gen = torch.Generator().manual_seed(seed)

    def numbers(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=gen)

    rows = rows_at(of_row, prefixes, tails)
    shared = Keys(*(numbers(len(lengths), KEY_HEADS, rows.prefix_tokens, SIZE) for _ in range(2)))
    mine = [Keys(*(numbers(len(tail.first), KEY_HEADS, BLOCK, SIZE) for _ in range(2))) for tail in tails]
    query = numbers(len(of_row), HEADS, SIZE)
    out = shared_attention(query, shared, mine, rows, rule)
    for row, prefix in enumerate(of_row):
        blocks = [
            (first, at, block)
            for at, row_of in enumerate(rows.row_of)
            for block, first in enumerate(tails[at].first)
            if row_of[block] == row
        ]
        seen = []
        for name in ("keys", "values"):
            parts = [getattr(mine[at], name)[block] for _, at, block in sorted(blocks)]
            mine_KTD = torch.cat(parts, 1)[:, : own[row]]
            seen.append(torch.cat([getattr(shared, name)[prefix, :, : lengths[prefix]], mine_KTD], 1))
        torch.testing.assert_close(out[row], alone(query[row], *seen, rule))


@pytest.mark.parametrize(("of_row", "products"), [([0, 0, 1, 1], 1), ([0] * 9 + [1, 2, 3, 4], 2)])
def test_a_crowded_prefix_does_not_widen_the_others(of_row, products):
    rows = rows_at(np.array(of_row), np.ones(max(of_row) + 1, np.int64), [tail_of([1] * len(of_row))])
    assert len(rows.seats) == products
    assert sum(at.num_prefixes * at.num_seats for at in rows.seats) <= 2 * len(of_row)


@pytest.mark.skipif(multiplies_bfloat16(), reason="the machine's own products round what lies between them")
def test_bfloat16_is_rounded_once_where_float32_products_serve_it():
    gen = torch.Generator().manual_seed(0)
    rows = rows_at(np.array([0, 0, 1, 1]), np.array([5, 4]), [tail_of([1, 3, 2, 3])])
    shapes = [(4, HEADS, SIZE), *[(2, KEY_HEADS, 5, SIZE)] * 2, *[(6, KEY_HEADS, BLOCK, SIZE)] * 2]
    narrow = [torch.randn(*shape, generator=gen).bfloat16() for shape in shapes]

    def attended(query: torch.Tensor, *kv: torch.Tensor) -> torch.Tensor:
        return shared_attention(query, Keys(*kv[:2]), [Keys(*kv[2:])], rows, Rule(0.5))

    exact = attended(*[x.double() for x in narrow])
    torch.testing.assert_close(attended(*narrow), exact.bfloat16(), rtol=2**-7, atol=1e-6)
