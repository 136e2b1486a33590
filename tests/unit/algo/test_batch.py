"""`Batch`: the columns of one step."""

import numpy as np

from strop.algo.batch import make_batch
from strop.sample import Group, Prompt, Sample, Tokens


def group_of(group_id, indices, *, trajectories=None, response=2, **fields):
    samples = [
        Sample(
            index=index,
            group_id=group_id,
            trajectory_id=-1 if trajectories is None else trajectories[row],
            sequence=Tokens.context([1, 2])
            + Tokens.drawn([index] * response, [-0.5] * response, [3] * response),
            prompt_length=2,
            reward=float(index),
            **fields,
        )
        for row, index in enumerate(indices)
    ]
    return Group(group_id, Prompt(id=str(group_id), messages=""), samples)


def batch_of(groups, num_updates=1):
    return make_batch(groups, num_updates=num_updates, max_response_tokens=8, temperature=1.0)


def test_samples_lie_by_group_then_index():
    batch = batch_of([group_of(1, [7, 5]), group_of(0, [2, 3])])
    assert [s.index for s in batch.samples] == [5, 7, 2, 3]
    assert batch.groups.tolist() == [1, 1, 0, 0]
    assert batch.offsets.tolist() == [0, 2, 4, 6, 8]


def test_tool_tokens_are_columns_without_behavior_or_mask():
    group = group_of(0, [0])
    group.samples[0].append_response_tokens(tokens=[9], trainable=False)
    batch = batch_of([group])
    assert batch.mask.tolist() == [True, True, False]
    assert np.isnan(batch.behavior).tolist() == [False, False, True]


def test_removed_sample_has_no_mask_but_keeps_its_place():
    batch = batch_of([group_of(0, [0, 1], remove_sample=True)])
    assert batch.num_tokens == 4
    assert not batch.mask.any()


def test_trajectories_are_dealt_evenly_to_updates():
    groups = [group_of(g, range(4 * g, 4 * g + 4)) for g in range(3)]
    assert batch_of(groups, num_updates=2).update.tolist() == [0] * 6 + [1] * 6
    assert batch_of(groups, num_updates=3).update.tolist() == [0] * 4 + [1] * 4 + [2] * 4


def test_trajectory_with_scattered_samples_lies_in_one_update():
    group = group_of(0, [0, 1, 2, 3], trajectories=[10, 11, 10, 11])
    assert batch_of([group], num_updates=2).update.tolist() == [0, 1, 0, 1]


def test_updates_beyond_the_trajectories_are_empty():
    assert batch_of([group_of(0, [0, 1])], num_updates=4).update.tolist() == [0, 2]


def test_batch_of_no_groups_is_empty():
    batch = batch_of([])
    assert (batch.num_tokens, batch.mask.shape, batch.update.shape) == (0, (0,), (0,))


def test_spread_repeats_a_value_over_the_tokens_of_a_sample():
    batch = batch_of([group_of(0, [0, 1]), group_of(1, [2], response=1)])
    assert batch.spread(batch.rewards).tolist() == [0, 0, 1, 1, 2]
    assert batch.tokens_of(2) == slice(4, 5)


def test_tokens_of_a_sample_have_advantages_of_their_own():  # NeMo#2787: one number seen as many
    batch = batch_of([group_of(0, [0, 1])])
    batch.advantage = batch.spread(np.array([1.0, 2.0]))
    batch.advantage[0] = 9.0
    assert batch.advantage.tolist() == [9, 1, 2, 2]
