"""Random numbers are functions of where they are used: worked values, uniform, alike in every batch."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strop.randomness import derive, generator, uniforms

SEEDS = st.integers(0, 2**64 - 1)
MASK = 2**64 - 1


def split_mix(seed: int, position: int) -> float:
    """SplitMix64 in Python's own integers: output number `position` of the generator begun at `seed`."""
    z = (seed + (position + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return ((z ^ (z >> 31)) >> 11) * 2.0**-53


def drawn(seeds, positions) -> np.ndarray:
    return uniforms(np.array(seeds, np.uint64), np.array(positions, np.int64))


def test_seeds_are_what_they_have_always_been():
    cases = [
        ((0,), 8493733112532773764),
        ((0, "sample"), 10502785926564565499),
        ((0, "sample", 0, 0, 0), 11503933373282222826),
        ((7, "eval/numbers", 0, 12, 3), 6394580437236241706),
    ]
    for path, seed in cases:
        assert derive(*path) == seed, path


def test_every_part_of_the_path_counts():
    paths = [(0, "a"), (0, "a", 1), (0, "a", 1, 2), (1, "a", 1), (0, "b", 1), (0, "a", "1")]
    for path in paths:
        assert derive(*path) not in {derive(*other) for other in paths if other is not path}, path


@given(seed=st.integers(0, 2**63), step=st.integers(0, 10**6))
def test_seeds_have_64_bits(seed, step):
    assert 0 <= derive(seed, "sample", step) <= MASK


def test_known_outputs_of_split_mix_64():
    # The reference implementation's first outputs from seed 1234567, as 53-bit fractions.
    reference = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert drawn([1234567] * 3, [0, 1, 2]).tolist() == [(z >> 11) * 2.0**-53 for z in reference]


@given(seed=SEEDS, position=st.integers(0, 2**40))
def test_noise_is_split_mix_64_and_in_the_half_open_unit_interval(seed, position):
    (unit,) = drawn([seed], [position])
    assert unit == split_mix(seed, position)
    assert 0 <= unit < 1


@given(st.lists(st.tuples(SEEDS, st.integers(0, 10**6)), min_size=1, max_size=20), st.randoms())
def test_noise_does_not_depend_on_the_batch_nor_on_the_layout_of_arrays(pairs, rng):
    order = list(range(len(pairs)))
    rng.shuffle(order)
    alone = [drawn([seed], [position])[0] for seed, position in pairs]
    shuffled = drawn(*zip(*(pairs[i] for i in order), strict=True))
    strided = uniforms(
        np.array([[seed, 0] for seed, _ in pairs], np.uint64)[:, 0],
        np.array([[0, position] for _, position in pairs], np.int64)[:, 1],
    )
    assert [alone[i] for i in order] == shuffled.tolist()
    assert alone == strided.tolist()


@pytest.mark.slow
@pytest.mark.parametrize(
    "varies", ["positions of one sample", "samples at one position", "neighbouring seeds"]
)
def test_noise_is_equidistributed(varies):
    n, bins = 50_000, 100
    positions = np.arange(n) if varies == "positions of one sample" else np.full(n, 17)
    seeds = {
        "positions of one sample": np.full(n, derive(0, "sample"), np.uint64),
        "samples at one position": np.array([derive(0, "sample", 0, i, 0) for i in range(n)], np.uint64),
        "neighbouring seeds": np.arange(n, dtype=np.uint64),
    }[varies]
    counts = np.bincount((uniforms(seeds, positions) * bins).astype(int), minlength=bins)
    chi_square = float(((counts - n / bins) ** 2).sum() / (n / bins))
    # 99 degrees of freedom: mean 99, deviation 14; the seed is fixed, so this never fails by chance
    assert abs(chi_square - (bins - 1)) < 4 * math.sqrt(2 * (bins - 1))


def test_noise_at_neighbouring_positions_is_uncorrelated():
    units = drawn([derive(0, "sample")] * 100_000, range(100_000))
    assert abs(np.corrcoef(units[:-1], units[1:])[0, 1]) < 4 / math.sqrt(len(units))


def test_generator_is_its_own_and_leaves_the_global_state_alone():
    random.seed(1)
    before = random.getstate()
    one, two, other = generator(0, "shuffle", 3), generator(0, "shuffle", 3), generator(0, "shuffle", 4)
    assert [one.random() for _ in range(5)] == [two.random() for _ in range(5)]
    assert one.random() != other.random()
    assert random.getstate() == before
