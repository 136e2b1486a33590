import itertools
import math

import pytest
from cases import case
from hypothesis import given
from hypothesis import strategies as st

from strop.telemetry.metrics import Last, Max, Mean, Min, Rate, Sum, is_timing, reduce

# slime's fixture: one rollout in three samples of three tokens (1..9), and a rollout of one sample (10..12).
SAMPLES = [("a", [1, 2, 3]), ("a", [4, 5, 6]), ("a", [7, 8, 9]), ("b", [10, 11, 12])]
TOKENS_OF = {"a": 9, "b": 3}
LAYOUTS = [
    [[0, 1, 2, 3]],
    [[0], [1], [2], [3]],
    [[0, 1, 2], [3]],
    [[0, 3], [1, 2]],  # one rollout split over both ranks
    [[0, 1], [2, 3]],
    [[3, 2, 1, 0], []],
]


def record_of(samples):
    values = [float(x) for _, tokens in samples for x in tokens]
    weights = [1 / TOKENS_OF[rollout] for rollout, tokens in samples for _ in tokens]
    return {"x/per_token": Mean.of(values), "x/per_rollout": Mean.of(values, weights)}


def test_a_mean_does_not_depend_on_how_its_tokens_are_spread_over_ranks():
    for layout in LAYOUTS:
        with case(layout):
            values = reduce(record_of([SAMPLES[i] for i in rank]) for rank in layout)
            assert values["x/per_rollout"] == pytest.approx(8.0, abs=1e-12)
            assert values["x/per_token"] == pytest.approx(6.5, abs=1e-12)


def test_a_mean_per_response_is_the_same_for_every_data_and_context_parallel_split():
    for dp, cp in itertools.product([1, 2, 4], repeat=2):
        with case(dp, cp):
            responses = [[value * scale for value in range(1, 9)] for scale in (1, 10, 100, 1000)]
            ranks = [
                {"x/mean": Mean.of(part, [1 / 8] * len(part))}
                for replica in range(dp)
                for shard in range(cp)
                for part in [[x for r in responses[replica::dp] for x in r[shard::cp]]]
            ]
            assert reduce(ranks)["x/mean"] == pytest.approx(1249.875, abs=1e-9)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12), st.integers(1, 4))
def test_n_ranks_report_what_one_would(values, num_ranks):
    def record(part):
        return {
            "x/sum": Sum(math.fsum(part)),
            "x/max": Max(max(part)),
            "x/min": Min(min(part)),
            "x/mean": Mean.of(part),
        }

    ranks = [record(values[rank::num_ranks]) for rank in range(num_ranks) if values[rank::num_ranks]]
    assert reduce(ranks) == pytest.approx(reduce([record(values)]), rel=1e-9, abs=1e-6)


def test_a_rate_is_total_amount_over_total_time():
    assert reduce([{"x/tokens_per_s": Rate(100, 1)}, {"x/tokens_per_s": Rate(100, 4)}]) == {
        "x/tokens_per_s": 40.0
    }


def test_last_is_what_came_last():
    assert reduce([{"train/lr": Last(0.1)}, {"train/lr": Last(0.2)}]) == {"train/lr": 0.2}


def test_a_mean_of_nothing_is_not_a_number():
    assert math.isnan(reduce([{"x/mean": Mean.of([])}])["x/mean"])


def test_a_record_may_lack_a_name():
    assert reduce([{"x/a": Sum(1)}, {"x/b": Sum(2)}, {"x/a": Sum(3)}]) == {"x/a": 4, "x/b": 2}


def test_one_name_has_one_reduction():
    with pytest.raises(TypeError, match="metric 'x/a': is Sum in one record and Max in another"):
        reduce([{"x/a": Sum(1)}, {"x/a": Max(1)}])


def test_a_name_has_a_station_and_a_noun():
    for name in ["reward", "Reward/mean", "reward/", "/mean"]:
        with case(name), pytest.raises(ValueError, match="expected station/noun"):
            reduce([{name: Sum(1)}])


def test_times_speeds_and_memory_are_told_from_results():
    cases = ["time/train", "perf/bound", "rollout/tokens_per_s", "wall_s", "peak_rss_gib"]
    for name in cases:
        assert is_timing(name), name


def test_results_are_not_timings():
    cases = ["reward/mean", "train/loss", "rollout/response_tokens", "step", "train/clips"]
    for name in cases:
        assert not is_timing(name), name


def test_a_score_with_a_capital_or_a_space_in_its_name_ended_the_run():
    cases = ["Accuracy", "Format OK", "genauigkeit-größe", "a/B", "two\nlines"]
    for name in cases:
        assert reduce([{f"reward/score/{name}": Mean(3, 2)}]) == {f"reward/score/{name}": 1.5}, name
