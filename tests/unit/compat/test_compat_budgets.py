"""What one sample's function does to its sampling parameters is seen by no other sample."""

import pytest
from scripted import Noise
from slime_run import runtime, samples_of

from strop.compat.generation import generate as single_turn


@pytest.fixture
async def run(tiny_dir):
    made = runtime(tiny_dir)
    yield made
    await made.close()


async def test_a_function_that_lowers_its_budget_shrinks_nobody_elses(run):
    """slime hands one table to all samples of a held-out set, and takes a sample's own length off it."""
    given = []

    async def generate(args, sample, sampling_params, evaluation=False):
        given.append(sampling_params["max_new_tokens"])
        sampling_params["max_new_tokens"] -= 30
        sampling_params["temperature"] = 0.0
        return await single_turn(args, sample, {**sampling_params, "temperature": 1.0})

    engine = Noise()
    samples = await samples_of(generate, run, size=4, engine=engine)
    assert [sample.error for sample in samples] == [None] * 4
    assert given == [40] * 4
    assert [request.sampling.max_tokens for request in engine.requests] == [10] * 4
    assert [sample.sampling.max_tokens for sample in samples] == [40] * 4


async def test_a_second_reply_has_what_the_first_left_of_the_budget(run):
    """verl#7207, slime#2261: a reply that goes on was given a budget anew."""

    async def generate(args, sample, sampling_params):
        for _ in range(9):
            await single_turn(args, sample, sampling_params)
        return sample

    engine = Noise()
    (sample,) = await samples_of(generate, run, engine=engine)
    assert [request.sampling.max_tokens for request in engine.requests] == [40, 35, 30, 25, 20, 15, 10, 5]
    assert (sample.error, sample.response_length, sample.status.value) == (None, 40, "truncated")
