"""Blocks keep what was written for a row, whoever comes and leaves, and have no holes."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from strop.engines.local.blocks import Blocks
from strop.engines.local.capacity import BLOCK_TOKENS, Room, rounded

LAYERS, HEADS, SIZE = 2, 2, 3


def write(blocks, names):
    """The next token of every row; a key is the row's name and the token's place, a value its negative."""
    fed = blocks.feed()
    for layer in range(LAYERS):
        new = torch.zeros(len(names), HEADS, SIZE)
        for row, name in enumerate(names):
            new[row] = torch.tensor([name, float(fed.lengths[row] - 1), layer])
            new[row] += 0.25 * torch.arange(HEADS)[:, None]
        blocks.keys[layer].view(-1, SIZE)[fed.place] = new.view(-1, SIZE)
        blocks.values[layer].view(-1, SIZE)[fed.place] = -new.view(-1, SIZE)
    return fed


def check(blocks, names, fed):
    """Everything that was ever written for the rows is where `fed` says."""
    found = {}
    for block, (row, first) in enumerate(zip(fed.row_of, fed.first, strict=True)):
        for token in range(first, min(first + BLOCK_TOKENS, fed.lengths[row])):
            found[int(row), token] = block
    assert len(found) == fed.lengths.sum()
    assert len(fed.row_of) == sum(rounded(int(n)) for n in fed.lengths) // BLOCK_TOKENS
    for (row, token), block in found.items():
        for layer in range(LAYERS):
            for head in range(HEADS):
                key = blocks.keys[layer][block, head, token % BLOCK_TOKENS]
                assert key.tolist() == [names[row] + 0.25 * head, token + 0.25 * head, layer + 0.25 * head]
                assert blocks.values[layer][block, head, token % BLOCK_TOKENS].tolist() == (-key).tolist()


@given(data=st.data())
def test_rows_keep_their_tokens_whoever_comes_and_leaves(data):
    blocks = Blocks(layers=LAYERS, heads=HEADS, head_dim=SIZE, dtype=torch.float32)
    names, next_name, room = [], 0, 0
    for _ in range(4):
        new = data.draw(st.integers(0 if names else 1, 3))
        names += range(next_name, next_name + new)
        next_name, room = next_name + new, room + 4 * BLOCK_TOKENS * new
        blocks.reserve(room)
        blocks.add_rows(new)
        fed = None
        for _ in range(data.draw(st.integers(1, BLOCK_TOKENS))):
            fed = write(blocks, names)
        check(blocks, names, fed)
        leaving = data.draw(st.sets(st.sampled_from(range(len(names)))))
        blocks.drop(leaving)
        for row in sorted(leaving, reverse=True):
            last = names.pop()
            if row < len(names):
                names[row] = last
        assert blocks.num_rows == len(names)


def test_an_empty_pool_that_is_much_too_large_is_made_anew():
    blocks = Blocks(layers=1, heads=1, head_dim=1, dtype=torch.float32)
    blocks.reserve(64 * BLOCK_TOKENS)
    blocks.reserve(40 * BLOCK_TOKENS)
    assert blocks.tokens == 64 * BLOCK_TOKENS
    blocks.reserve(8 * BLOCK_TOKENS)
    assert (blocks.tokens, len(blocks.keys[0])) == (8 * BLOCK_TOKENS, 8)


def test_what_is_taken_is_prefixes_of_one_size_and_own_tokens_in_whole_blocks():
    room = Room(0, 0).with_prefix(17).with_own(1).with_prefix(5).with_own(BLOCK_TOKENS + 1).with_own(0)
    assert room.tokens == 2 * 32 + 3 * BLOCK_TOKENS
