"""In which tokens credit flows."""

import numpy as np

from strop.algo.spans import Spans


def test_samples_of_a_trajectory_are_one_span_wherever_they_lie_in_the_batch():
    spans = Spans.of_trajectories(np.array([0, 2, 3, 3, 6]), np.array([8, 5, 5, 8]))
    assert spans.order_N.tolist() == [2, 0, 1, 3, 4, 5]
    assert spans.offsets_R.tolist() == [0, 1, 6]
    assert spans.span_of_sample_S.tolist() == [1, 0, 0, 1]


def test_trajectories_of_one_sample_are_the_samples():
    offsets = np.array([0, 2, 3, 6])
    by_sample, by_trajectory = Spans.of_samples(offsets), Spans.of_trajectories(offsets, np.arange(3))
    assert by_sample.order_N.tolist() == by_trajectory.order_N.tolist()
    assert by_sample.offsets_R.tolist() == by_trajectory.offsets_R.tolist()
    assert by_sample.span_of_sample_S.tolist() == by_trajectory.span_of_sample_S.tolist()


def test_a_span_without_tokens_has_no_last_one():
    spans = Spans.of_samples(np.array([0, 0, 2, 2]))
    assert spans.filled.tolist() == [1]
    assert spans.last_places.tolist() == [1]


def test_there_and_back_is_the_same_column():
    spans = Spans.of_trajectories(np.array([0, 2, 3, 6]), np.array([1, 0, 1]))
    column_N = np.arange(6.0)
    assert spans.back(column_N[spans.order_N]).tolist() == column_N.tolist()


def test_no_samples_have_no_spans():
    for spans in (
        Spans.of_samples(np.zeros(1, np.int64)),
        Spans.of_trajectories(np.zeros(1, np.int64), np.zeros(0, np.int64)),
    ):
        assert len(spans) == 0
        assert spans.order_N.shape == (0,)
