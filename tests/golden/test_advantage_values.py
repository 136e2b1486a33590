"""Hand-worked advantages: a row's id names the section of the specification, and its value holds to 1e-6."""

import numpy as np
import pytest
from small_steps import batch_of, credited, with_kl

from strop.algo.advantages import greedy_advantages, group_advantages, leave_one_out_advantages
from strop.algo.kl import kl_values
from strop.algo.ranks import rank_advantages, rank_rewards
from strop.algo.returns import advantage_estimates, discounted_returns
from strop.algo.roles import role_advantages
from strop.algo.scan import backward_scan
from strop.algo.spans import Spans
from strop.algo.step_advantages import step_advantages
from strop.algo.token_rewards import outcome_rewards, placed_rewards
from strop.algo.whiten import whiten


def floats(*values):
    return np.array(values, np.float64)


def one_span(n):
    return Spans.of_samples(np.array([0, n]))


def offsets_of(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def of_one_group(function, rewards, trajectories=None, **options):
    n = len(rewards)
    return function(
        floats(*rewards),
        groups=np.zeros(n, np.int64),
        trajectories=np.arange(n) if trajectories is None else np.array(trajectories),
        **options,
    )


ROOT = np.sqrt(0.5)


@pytest.mark.parametrize(
    ("advantages", "expected"),
    [
        pytest.param(
            lambda: of_one_group(group_advantages, [1, 0, 0, 1, 1, 1], normalize_std=True),
            [0.645496, -1.290992, -1.290992, 0.645496, 0.645496, 0.645496],
            id="2.3-grpo",
        ),
        pytest.param(
            lambda: of_one_group(group_advantages, [1, 0, 0, 1, 1, 1], normalize_std=False),
            [0.333333, -0.666667, -0.666667, 0.333333, 0.333333, 0.333333],
            id="2.3-dr_grpo",
        ),
        pytest.param(
            lambda: of_one_group(group_advantages, [0.7, 0.7, 0.7], normalize_std=True),
            [0, 0, 0],
            id="2.3-grpo-equal",
        ),
        pytest.param(
            lambda: of_one_group(group_advantages, [1, 0], normalize_std=True),
            [ROOT - 1e-6, 1e-6 - ROOT],
            id="1.4-unbiased-std-epsilon-1e-6",
        ),
        pytest.param(
            lambda: of_one_group(leave_one_out_advantages, [2, 0, 1, 1]), [4 / 3, -4 / 3, 0, 0], id="2.3-rloo"
        ),
        pytest.param(lambda: of_one_group(greedy_advantages, [1], greedy={0: 0.75}), [0.25], id="2.3-remax"),
        pytest.param(
            lambda: of_one_group(group_advantages, [1, 1, 1, 0], [7, 7, 7, 8], normalize_std=False),
            [0.5, 0.5, 0.5, -0.5],
            id="2.3-fan-out-baseline-of-a-half",
        ),
        pytest.param(
            lambda: of_one_group(rank_advantages, [4, 3, 2, 1]),
            [1.1618922, 0.3872975, -0.3872975, -1.1618922],
            id="2.19-rank-advantages",
        ),
        pytest.param(
            lambda: (
                role_advantages(
                    floats(1, -1, 1), roles=["first"] * 3, trajectories=np.arange(3), baselines={}
                ).advantages
            ),
            [0.95, -0.9975, 0.952375],
            id="2.19-spiral",
        ),
    ],
)
def test_advantage_of_a_sample(advantages, expected):
    assert advantages() == pytest.approx(expected, abs=1e-6)


def test_the_population_deviation_would_give_another_advantage():
    advantages = of_one_group(group_advantages, [1, 0, 0, 1, 1, 1], normalize_std=True)
    assert abs(advantages[0] - 0.7071) > 0.05
    assert abs(advantages[1] + 1.4142) > 0.1


def test_baselines_of_a_role_follow_its_rewards():  # formulas 2.19
    known: dict[str, float] = {}
    for reward, expected in [(1, 0.05), (-1, -0.0025), (1, 0.047625)]:
        known = role_advantages(
            floats(reward), roles=["first"], trajectories=np.zeros(1, np.int64), baselines=known
        ).baselines
        assert known["first"] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("scores", "ties", "expected"),
    [
        pytest.param([4, 3, 2, 1], "average", [1, 2 / 3, 1 / 3, 0], id="1.5-quantile-rewards"),
        pytest.param([3, 2, 2, 1], "average", [1, 0.5, 0.5, 0], id="1.5-average-ranks"),
        pytest.param([3, 2, 2, 1], "min", [1, 2 / 3, 2 / 3, 0], id="1.5-min-rank"),
        pytest.param([5, 5, 5], "min", [0, 0, 0], id="1.5-min-rank-all-tied"),
        pytest.param([1, 3, 1, 3], "average", [1 / 6, 5 / 6, 1 / 6, 5 / 6], id="1.5-two-pairs"),
    ],
)
def test_rank_rewards(scores, ties, expected):
    assert rank_rewards(floats(*scores), ties=ties) == pytest.approx(expected, abs=1e-9)


LENGTHS_OF_SLIME = [48, 90, 12, 16, 30, 84, 20, 96]
REWARDS_OF_SLIME = [1.5, -0.5, -1, 2, 0.25, -1.75, 0.75, -0.25]
WHITENED_OF_SLIME = [1.633087, -0.226589, -0.691508, 2.098006, 0.470789, -1.388887, 0.935708, 0.005870]


def test_whitening_of_slimes_eight_responses():  # formulas 1.5
    values_N = np.repeat(REWARDS_OF_SLIME, LENGTHS_OF_SLIME)
    white = whiten(values_N, np.ones(len(values_N), bool), variance="bessel")
    assert white.mean == pytest.approx(-0.2563131, abs=1e-6)
    assert white.variance == pytest.approx(1.1566056, abs=1e-6)
    assert white.values_N == pytest.approx(np.repeat(WHITENED_OF_SLIME, LENGTHS_OF_SLIME), abs=1e-6)


@pytest.mark.parametrize(
    ("value", "n"), [(-0.9, 7), (-0.9, 100), (1.7, 1000), (1.7, 4096), (1.7, 30000)], ids=lambda x: f"1.5-{x}"
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("variance", ["bessel", "population"])
def test_whitened_constants_are_exactly_zero(value, n, dtype, variance):
    white = whiten(np.full(n, value, dtype), np.ones(n, bool), variance=variance)
    assert not white.values_N.any()
    assert not white.is_scaled


def reinforced(whiten):
    batch = with_kl(batch_of([1, 0], [3, 2], group_size=1), [0.1, 0.2, 0.3, 0.0, 0.4])
    return credited(batch, advantage="returns", kl_coef=0.1, whiten=whiten)


def grouped(whiten):
    return credited(batch_of([1, 0, 1, 1], [2, 1, 1, 1]), normalize_std=False, whiten=whiten)


def moments(values_N, *, ddof):
    return values_N.mean(dtype=np.float64), values_N.var(ddof=ddof, dtype=np.float64)


@pytest.mark.parametrize(
    ("variance", "spread", "expected"),
    [
        pytest.param(
            "population",
            0.236904,
            [0.788942, 0.809487, 0.850578, -1.224504, -1.224504],
            id="2.4-reinforce_pp-population",
        ),
        pytest.param(
            "bessel",
            0.29613,
            [0.705651, 0.724027, 0.760780, -1.095229, -1.095229],
            id="2.4-reinforce_pp-bessel",
        ),
    ],
)
def test_reinforce_pp(variance, spread, expected):
    found = moments(reinforced("none"), ddof=1 if variance == "bessel" else 0)
    assert found == pytest.approx((0.556, spread), abs=1e-6)
    assert reinforced(variance) == pytest.approx(expected, abs=1e-6)


def test_reinforce_pp_with_a_group_baseline():  # formulas 2.4
    assert moments(grouped("none"), ddof=0) == pytest.approx((0.1, 0.14), abs=1e-9)
    expected = [1.069045, 1.069045, -1.603567, -0.267261, -0.267261]
    assert grouped("population") == pytest.approx(expected, abs=1e-6)


PRICES = (floats(0.2, 0.1, 0.3, 0.4, 0.5, 0.4, 0.2, 0.1), np.array([0, 1, 1, 1, 0, 1, 1, 1], bool))


def priced(rewards, kl_N, mask_N, offsets, *, coef, discount):
    batch = with_kl(batch_of(rewards, np.diff(offsets), group_size=1), kl_N)
    batch.mask = mask_N
    return credited(batch, advantage="returns", kl_coef=coef, gamma=discount)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(
            lambda: priced(
                [1, 0], floats(0.1, 0.2, 0.3, 0, 0.4), np.ones(5, bool), [0, 3, 5], coef=0.1, discount=1.0
            ),
            [0.94, 0.95, 0.97, -0.04, -0.04],
            id="2.4-returns-of-two-sequences",
        ),
        pytest.param(
            lambda: priced([1], np.zeros(3), np.array([1, 0, 1], bool), [0, 3], coef=0.0, discount=1.0),
            [1, 0, 1],
            id="2.4-multi-turn",
        ),
        pytest.param(
            lambda: priced([2, -1], *PRICES, [0, 5, 8], coef=0.1, discount=0.99),
            [0, 1.881296, 1.9104, 1.96, 0, -1.049701, -1.0199, -1.01],
            id="2.4-slime",
        ),
        pytest.param(
            lambda: priced(
                [2, -1, 5],
                np.append(PRICES[0], [9, 9]),
                np.append(PRICES[1], [False, False]),
                [0, 5, 8, 10],
                coef=0.1,
                discount=0.99,
            ),
            [0, 1.881296, 1.9104, 1.96, 0, -1.049701, -1.0199, -1.01, 0, 0],
            id="2.4-slime-with-a-sample-that-is-not-trained",
        ),
        pytest.param(
            lambda: outcome_rewards(
                floats(2, -1), mask_N=PRICES[1], spans=Spans.of_samples(np.array([0, 5, 8]))
            ),
            [0, 0, 0, 2, 0, 0, 0, -1],
            id="1.7-last-trained-token",
        ),
        pytest.param(
            lambda: discounted_returns(
                placed_rewards(
                    floats(0.5, 1),
                    end_K=np.array([1, 4]),
                    mask_N=np.array([1, 1, 0, 1, 0], bool),
                    spans=one_span(5),
                ),
                mask_N=np.array([1, 1, 0, 1, 0], bool),
                spans=one_span(5),
                discount=0.9,
            ),
            [0.9 * 1.4, 1.4, 0, 1.0, 0],
            id="2.5-a-reward-per-turn",
        ),
    ],
)
def test_returns(found, expected):
    assert found() == pytest.approx(expected, abs=1e-6)


def estimated(reward, value, mask, *, next_value=None, discount=1.0, trace=0.95):
    return advantage_estimates(
        floats(*reward),
        floats(*value),
        mask_N=np.array(mask, bool),
        spans=one_span(len(reward)),
        discount=discount,
        trace=trace,
        next_value_S=None if next_value is None else floats(next_value),
    )


@pytest.mark.parametrize(
    ("estimates", "advantage", "target"),
    [
        pytest.param(
            lambda: estimated([0, 0, 1], [0.5, 0.6, 0.7], [1, 1, 1]),
            [0.46575, 0.385, 0.3],
            [0.96575, 0.985, 1.0],
            id="2.5-gae",
        ),
        pytest.param(
            lambda: estimated([0, 0, 0, 1], [0.5, 9, 0.6, 0.7], [1, 0, 1, 1]),
            [0.46575, 0, 0.385, 0.3],
            [0.96575, 0, 0.985, 1.0],
            id="2.5-observation-token",
        ),
        pytest.param(
            lambda: estimated([0, 0, 0], [0.5, 0.6, 0.7], [1, 1, 1], next_value=1.0),
            [0.46575, 0.385, 0.3],
            [0.96575, 0.985, 1.0],
            id="2.5-bootstrap",
        ),
    ],
)
def test_advantages_with_a_critic(estimates, advantage, target):
    assert estimates().advantage_N == pytest.approx(advantage, abs=1e-9)
    assert estimates().return_N == pytest.approx(target, abs=1e-9)


def test_temporal_differences_are_the_advantages_without_a_trace():  # formulas 2.5: δ
    assert estimated([0, 0, 1], [0.5, 0.6, 0.7], [1, 1, 1], trace=0.0).advantage_N == pytest.approx(
        [0.1, 0.1, 0.3], abs=1e-9
    )


def test_scan_of_three_in_chunks_of_two():  # formulas 2.5: reversed differences .3, .1, .1
    scanned = backward_scan(np.full(3, 0.95), floats(0.1, 0.1, 0.3), chunk=2)
    assert scanned[::-1] == pytest.approx([0.3, 0.385, 0.46575], abs=1e-12)


SHAPES_OF_SLIME = [(1, 1), (3, 127), (3, 128), (3, 129), (3, 1000)]


def serial(gain_N, decay):
    found, behind = np.zeros(len(gain_N)), 0.0
    for t in range(len(gain_N) - 1, -1, -1):
        found[t] = behind = gain_N[t] + decay * behind
    return found


@pytest.mark.parametrize("discount", [0, 0.5, 0.99, 1])
@pytest.mark.parametrize(("rows", "length"), SHAPES_OF_SLIME)
def test_returns_are_those_of_slimes_serial_loop(rows, length, discount):
    reward = np.random.default_rng(length).normal(size=(rows, length))
    found = discounted_returns(
        reward.ravel(),
        mask_N=np.ones(rows * length, bool),
        spans=Spans.of_samples(offsets_of([length] * rows)),
        discount=discount,
    )
    expected = np.concatenate([serial(row, discount) for row in reward])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


def test_returns_behind_the_right_padding_stay_zero():  # slime: lengths 3, 129, 511
    lengths, width = [3, 129, 511], 511
    mask_N = (np.arange(width) < np.array(lengths)[:, None]).ravel()
    reward_N = np.random.default_rng(0).normal(size=len(mask_N))
    found = discounted_returns(
        reward_N, mask_N=mask_N, spans=Spans.of_samples(offsets_of([width] * 3)), discount=0.99
    )
    assert not found[~mask_N].any()
    expected = np.concatenate(
        [serial(row[:n], 0.99) for row, n in zip(reward_N.reshape(3, width), lengths, strict=True)]
    )
    np.testing.assert_allclose(found[mask_N], expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("length", [127, 128, 129])
def test_advantages_are_those_of_slimes_serial_loop(length):  # γ .99, λ .95
    rng = np.random.default_rng(length)
    reward, value = rng.normal(size=length), rng.normal(size=length)
    found = estimated(reward, value, np.ones(length), discount=0.99).advantage_N
    delta = reward + 0.99 * np.append(value[1:], 0) - value
    np.testing.assert_allclose(found, serial(delta, 0.99 * 0.95), rtol=0, atol=1e-10)


def test_steps_of_a_group_are_standardised_together():  # formulas 2.17: rewards .9, .8, .6 and .1
    found = step_advantages(
        floats(0.9, 0.8, 0.6, 0.1),
        end_K=np.array([1, 2, 4, 5]),
        mask_N=np.array([1, 1, 1, 0, 1, 1], bool),
        offsets=np.array([0, 5, 6]),
        groups=np.zeros(2, np.int64),
        trajectories=np.arange(2),
    )
    r = (floats(0.9, 0.8, 0.6, 0.1) - 0.6) / (np.sqrt(0.38 / 3) + 1e-6)
    assert found == pytest.approx([r[:3].sum(), r[:3].sum(), r[1] + r[2], 0, r[2], r[3]], abs=1e-9)
    assert found == pytest.approx([1.404875, 1.404875, 0.561950, 0, 0, -1.404875], abs=1e-5)


def test_the_reported_kl_is_not_changed_by_the_reward():  # slime#2114, formulas 2.1
    batch = batch_of([1], [3], group_size=1)
    batch.scored.update(old=floats(0.5, 0.7, 0.9), ref=floats(0.4, 0.5, 0.6))
    assert credited(batch, advantage="returns", kl_coef=0.5) == pytest.approx([0.7, 0.75, 0.85])
    kl_N = kl_values(batch.scored["old"], batch.scored["ref"], kind="k1")
    assert kl_N == pytest.approx([0.1, 0.2, 0.3], abs=1e-9)
