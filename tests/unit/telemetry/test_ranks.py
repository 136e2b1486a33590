"""Two ranks that share a step say what one would, however its samples are spread over them."""

import pytest
from cases import case
from hypothesis import given, settings
from hypothesis import strategies as st

from strop.sample import Group, Prompt, Sample, Status, Tokens
from strop.telemetry.groups import cells_of, group_record, pass_record
from strop.telemetry.metrics import Grouped, Mean, reduce

PROMPT = Prompt(id="p", messages="?")


def sample(index, reward, logps, *, trajectory, status=Status.COMPLETED, version=0):
    drawn = Tokens.drawn([7] * len(logps), logps, [version] * len(logps))
    return Sample(
        index=index,
        group_id=0,
        trajectory_id=trajectory,
        sequence=Tokens.context([1, 2]) + drawn,
        prompt_length=2,
        reward=reward,
        status=status,
        scores={"format": reward / 2},
    )


# slime's fixture: one trajectory in three samples of three tokens (1 … 9), one of one sample (10 … 12).
FIXTURE = [
    Group(
        0,
        PROMPT,
        [
            sample(0, 2.0, [-1, -2, -3], trajectory=0),
            sample(1, 5.0, [-4, -5, -6], trajectory=0),
            sample(2, 8.0, [-7, -8, -9], trajectory=0),
            sample(3, 11.0, [-10, -11, -12], trajectory=3),
        ],
    )
]
LAYOUTS = [[0, 0, 0, 0], [0, 1, 2, 3], [0, 0, 0, 1], [0, 1, 1, 0], [0, 0, 1, 1], [1, 1, 1, 1]]
"""The rank of each sample; in the fourth and fifth the long trajectory lies on two."""


def on_rank(groups, ranks, rank):
    """What one rank holds: parts of groups."""
    place = iter(ranks)
    parts = [
        Group(group.id, group.prompt, [s for s in group.samples if next(place) == rank], tries=group.tries)
        for group in groups
    ]
    return [part for part in parts if part.samples]


def merged(groups, ranks, *, step=3):
    records = [group_record(on_rank(groups, ranks, rank), step) for rank in sorted(set(ranks))]
    passing = [pass_record(cells_of(on_rank(groups, ranks, rank)), samples=3) for rank in sorted(set(ranks))]
    return reduce(records) | reduce(passing)


def test_a_trajectory_on_two_ranks_counts_once():
    for ranks in LAYOUTS:
        with case(ranks):
            found = merged(FIXTURE, ranks)
            assert found["reward/mean"] == 8.0
            assert found["rollout/behavior_logp"] == -6.5
            assert found["rollout/groups"] == 1


def groups_of(rewards, sizes):
    """Groups of three trajectories, each of as many samples as `sizes` says."""
    groups, index = [], 0
    for number in range(len(rewards) // 3):
        samples = []
        for trajectory in range(3):
            at = 3 * number + trajectory
            for _ in range(sizes[at]):
                status = Status.TRUNCATED if index % 3 == 0 else Status.COMPLETED
                logps = [-0.25 * (index + 1)] * (index % 4 + 1)
                samples.append(
                    sample(index, rewards[at], logps, trajectory=at, status=status, version=index % 3)
                )
                index += 1
        groups.append(Group(number, PROMPT, samples, tries=number))
    return groups


@settings(max_examples=25, deadline=None)
@given(
    rewards=st.lists(st.sampled_from([0.0, 0.3, 1.0, -2.5]), min_size=6, max_size=6),
    sizes=st.lists(st.integers(1, 3), min_size=6, max_size=6),
    ranks=st.lists(st.integers(0, 1), min_size=18, max_size=18),
)
def test_every_metric_of_two_ranks_is_that_of_one(rewards, sizes, ranks):
    groups = groups_of(rewards, sizes)
    num = sum(sizes)
    assert merged(groups, ranks[:num]) == pytest.approx(merged(groups, [0] * num), rel=1e-12, abs=1e-12)


def test_a_group_whose_figure_is_unknown_is_left_out():
    assert Grouped({(0, 0): Mean(1, 1), (1, 0): Mean(3, 1)}, lambda v: None if v == [3] else v[0]).value == 1
