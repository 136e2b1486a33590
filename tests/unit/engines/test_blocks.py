"""Blocks keep what was written for a row, whoever comes and leaves, and have no holes."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from strop.engines.local.blocks import Blocks
from strop.engines.local.capacity import BLOCK_TOKENS, Room, rounded
from strop.errors import EngineFailed
from strop.runtime.memory import resident_bytes

LAYERS, HEADS, SIZE = 2, 2, 3


def write(blocks, names):
    """The next token of every row; a key is the row's name and the token's place, a value its negative."""
    fed = blocks.feed()
    lengths = fed.tail.lengths
    for layer in range(LAYERS):
        new = torch.zeros(len(names), HEADS, SIZE)
        for row, name in enumerate(names):
            new[row] = torch.tensor([name, float(lengths[row] - 1), layer])
            new[row] += 0.25 * torch.arange(HEADS)[:, None]
        blocks.put(layer, fed, new, -new)
    return fed


def check(blocks, names, tail):
    """Everything that was ever written for the rows is where `tail` says."""
    found = {}
    for block, (row, first) in enumerate(zip(tail.row_of, tail.first, strict=True)):
        for token in range(first, min(first + BLOCK_TOKENS, tail.lengths[row])):
            found[int(row), token] = block
    assert len(found) == tail.lengths.sum()
    assert len(tail.row_of) == sum(rounded(int(n)) for n in tail.lengths) // BLOCK_TOKENS
    for (row, token), block in found.items():
        for layer in range(LAYERS):
            for head in range(HEADS):
                key = blocks.keys[layer][block, head, token % BLOCK_TOKENS]
                assert key.tolist() == [names[row] + 0.25 * head, token + 0.25 * head, layer + 0.25 * head]
                assert blocks.values[layer][block, head, token % BLOCK_TOKENS].tolist() == (-key).tolist()


@given(data=st.data())
def test_rows_keep_their_tokens_whoever_comes_and_leaves(data):
    form = {"layers": LAYERS, "heads": HEADS, "head_dim": SIZE}
    blocks = Blocks(**form, dtype=torch.float32, max_tokens=48 * BLOCK_TOKENS)
    names, next_name = [], 0
    for _ in range(4):
        new = data.draw(st.integers(0 if names else 1, 3))
        names += range(next_name, next_name + new)
        next_name += new
        blocks.add_rows(new)
        fed = None
        for _ in range(data.draw(st.integers(1, BLOCK_TOKENS))):
            fed = write(blocks, names)
        check(blocks, names, fed.tail)
        leaving = data.draw(st.sets(st.sampled_from(range(len(names)))))
        blocks.drop(leaving)
        for row in sorted(leaving, reverse=True):
            last = names.pop()
            if row < len(names):
                names[row] = last
        assert blocks.num_rows == len(names)


@given(data=st.data())
def test_rows_that_are_given_away_keep_their_tokens(data):
    form = {"layers": LAYERS, "heads": HEADS, "head_dim": SIZE}
    pools = [Blocks(**form, dtype=torch.float32, max_tokens=48 * BLOCK_TOKENS) for _ in range(2)]
    names = [list(range(data.draw(st.integers(2, 4)))), list(range(10, 10 + data.draw(st.integers(0, 2))))]
    for blocks, of_pool in zip(pools, names, strict=True):
        blocks.add_rows(len(of_pool))
        for _ in range(data.draw(st.integers(0, 2 * BLOCK_TOKENS)) if of_pool else 0):
            write(blocks, of_pool)
    if data.draw(st.booleans()):
        names[0].append(5)
        pools[0].add_rows(1)
    num = data.draw(st.integers(1, len(names[0])))
    pools[0].give_last(num, pools[1])
    names[1] += names[0][-num:]
    del names[0][-num:]
    for blocks, of_pool in zip(pools, names, strict=True):
        assert blocks.num_rows == len(of_pool)
        if of_pool:
            check(blocks, of_pool, write(blocks, of_pool).tail)


def test_memory_is_taken_for_the_most_blocks_that_were_in_use():
    blocks = Blocks(layers=1, heads=1, head_dim=1, dtype=torch.float32, max_tokens=64 * BLOCK_TOKENS)
    assert (blocks.tokens, blocks.keys) == (0, [])
    blocks.add_rows(3)
    blocks.feed()
    blocks.drop([0, 1])
    assert (blocks.tokens, len(blocks.keys[0])) == (3 * BLOCK_TOKENS, 64)
    blocks.drop([0])
    blocks.add_rows(1)
    blocks.feed()
    assert blocks.tokens == BLOCK_TOKENS, "what a larger round took is given back"
    blocks.clear()
    assert (blocks.tokens, blocks.keys) == (0, [])


def test_what_was_never_written_is_a_number_and_takes_no_memory():
    room = 64 * 2**20
    before = resident_bytes()
    blocks = Blocks(layers=1, heads=1, head_dim=room // 64, dtype=torch.bfloat16, max_tokens=64)
    blocks.add_rows(1)
    blocks.feed()
    assert blocks.keys[0].nbytes == blocks.values[0].nbytes == 2 * room
    assert not blocks.keys[0][0, 0, 0].any()
    assert resident_bytes() - before < room


def test_a_machine_that_grants_no_addresses_is_answered_in_one_line():
    blocks = Blocks(layers=1, heads=64, head_dim=64, dtype=torch.float32, max_tokens=2**36)
    with pytest.raises(
        EngineFailed, match=r"^engine\.max_tokens = 68,719,476,736: .* no 1,048,576\.0 GiB .*lower it$"
    ):
        blocks.add_rows(1)


def test_what_is_taken_is_prefixes_of_one_size_and_own_tokens_in_whole_blocks():
    room = Room(0, 0).with_prefix(17).with_own(1).with_prefix(5).with_own(BLOCK_TOKENS + 1).with_own(0)
    assert room.tokens == 2 * 32 + 3 * BLOCK_TOKENS
