"""Draws from kept sets against a plain reference: sort everything, cut three times, renormalise."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from strop.engines.local import truncation
from strop.engines.local.sampler import Drawn, draw
from strop.sample import Sampling


def drawn(logits: list[list[float]] | torch.Tensor, *samplings: Sampling, seed: int = 0) -> Drawn:
    n = len(samplings)
    given = torch.tensor(np.asarray(logits), dtype=torch.float32)
    seeds = np.arange(seed, seed + n, dtype=np.uint64)
    return draw(given, samplings=samplings, seeds=seeds, positions=np.zeros(n, np.int64))


def cut(**keys: float) -> Sampling:
    return Sampling(max_tokens=1, **keys)  # type: ignore[arg-type]


def plain_set(logits: np.ndarray, sampling: Sampling) -> list[int]:
    """Ids in the order of likelihood, lowest first among equals; cut by top-k, then top-p, then min-p."""
    scaled = torch.from_numpy(logits).float() / np.float32(sampling.temperature)
    weights = (scaled - scaled.max()).double().exp().numpy()
    order = sorted(range(len(weights)), key=lambda i: (-float(scaled[i]), i))
    if sampling.top_k > 0:
        order = order[: sampling.top_k]
    total, reached, nucleus = sum(weights[i] for i in order), 0.0, []
    for i in order:
        if reached >= sampling.top_p * total and sampling.top_p < 1:
            break
        nucleus.append(i)
        reached += weights[i]
    return sorted(i for i in nucleus if weights[i] >= sampling.min_p * weights[order[0]])


# Halves give many ties, at the border too; and no sum of weights is equal to a cut but by rounding alike.
LOGITS = st.lists(st.integers(-12, 12).map(lambda n: n / 2), min_size=9, max_size=9)


@given(
    rows=st.lists(LOGITS, min_size=1, max_size=4),
    temperature=st.sampled_from([0.6, 1.0, 1.7]),
    top_k=st.sampled_from([-1, 1, 2, 5, 9, 50]),
    top_p=st.sampled_from([1.0, 0.9, 0.37, 0.01]),
    min_p=st.sampled_from([0.0, 0.05, 0.6]),
    first=st.sampled_from([1, 3, 256]),
)
@settings(max_examples=40, deadline=None)
def test_kept_set_and_logprob_equal_the_plain_reference(rows, temperature, top_k, top_p, min_p, first):
    sampling = cut(temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(truncation, "FIRST", first)
        found = drawn(rows, *[sampling] * len(rows))
    assert set(found.kept) == (set() if sampling.keeps_all else set(range(len(rows))))
    for row, kept in found.kept.items():
        logits = np.array(rows[row])
        assert (kept.tolist(), kept.dtype) == (plain_set(logits, sampling), np.int32)
        p = np.exp(logits[kept] / temperature - max(logits) / temperature)
        expected = np.log(p[kept.tolist().index(found.ids[row])] / p.sum())
        assert found.logp[row] == pytest.approx(expected, abs=2e-5)


def test_top_p_is_of_what_top_k_left_and_min_p_is_of_the_likeliest():
    logits = np.log([[0.4, 0.2, 0.2, 0.1, 0.1]])
    assert drawn(logits, cut(top_k=3, top_p=0.7)).kept[0].tolist() == [0, 1]  # 0.6 of 0.8 is 0.75
    assert drawn(logits, cut(top_p=0.7)).kept[0].tolist() == [0, 1, 2]
    assert drawn(logits, cut(min_p=0.3)).kept[0].tolist() == [0, 1, 2]


def test_of_equal_tokens_at_the_border_the_lowest_ids_are_kept():
    logits = [[0.0, 1.0, 1.0, 2.0, 1.0, 1.0]]
    assert drawn(logits, cut(top_k=3)).kept[0].tolist() == [1, 2, 3]
    assert drawn([[1.0] * 600], cut(top_p=0.5)).kept[0].tolist() == list(range(300))


def test_set_larger_than_the_first_look_is_found_whole():
    torch.manual_seed(0)
    logits = torch.randn(2, 1000)
    found = drawn(logits, cut(top_p=0.95), cut(top_k=700))
    assert found.kept[0].tolist() == plain_set(logits[0].numpy(), cut(top_p=0.95))
    assert (len(found.kept[0]) > truncation.FIRST, len(found.kept[1])) == (True, 700)


def test_rows_that_draw_from_all_do_not_change_by_a_bit_beside_rows_that_do_not():
    torch.manual_seed(1)
    logits = torch.randn(4, 300)
    alone = drawn(logits, *[cut(temperature=0.7)] * 4)
    mixed = drawn(logits, cut(temperature=0.7), cut(top_k=5), cut(temperature=0.7), cut(top_p=0.3))
    assert mixed.ids[[0, 2]].tolist() == alone.ids[[0, 2]].tolist()
    assert mixed.logp[[0, 2]].tobytes() == alone.logp[[0, 2]].tobytes()
    assert set(mixed.kept) == {1, 3}


def test_greedy_stays_greedy_and_keeps_no_set():
    torch.manual_seed(2)
    logits = torch.randn(1, 300)
    greedy, cut_too = drawn(logits, cut(temperature=0)), drawn(logits, cut(temperature=0, top_p=0.5, top_k=3))
    assert cut_too.ids.tolist() == greedy.ids.tolist() == logits.argmax(-1).tolist()
    assert cut_too.logp.tobytes() == greedy.logp.tobytes()
    assert cut_too.kept == {}


def test_tokens_follow_the_cut_distribution():
    logits, n = np.log([0.5, 0.3, 0.15, 0.05]), 1000
    found = drawn([logits] * n, *[cut(top_p=0.9)] * n)
    counts, p = np.bincount(found.ids, minlength=4), np.array([0.5, 0.3, 0.15, 0]) / 0.95
    assert (np.abs(counts - n * p) <= 5 * np.sqrt(n * p * (1 - p))).all()


def test_sampling_without_a_cut_uses_the_same_noise_as_one_that_keeps_everything():
    torch.manual_seed(3)
    logits = torch.randn(8, 50)
    free, all_kept = drawn(logits, *[cut()] * 8), drawn(logits, *[cut(top_k=50)] * 8)
    assert all_kept.ids.tolist() == free.ids.tolist()
    np.testing.assert_allclose(all_kept.logp, free.logp, atol=1e-6)


def test_token_without_weight_is_never_drawn():
    found = drawn([[0.0, -500.0, 0.0]] * 200, *[cut(top_k=3)] * 200)
    assert set(found.ids.tolist()) == {0, 2}
