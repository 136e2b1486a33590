"""Memory part by part: what changes a part, what is there at which moment, what makes a run fit."""

import pytest

from strop.config.load import load_config
from strop.forecast.load import Lengths, load_of
from strop.forecast.memory import MIB, Base, memory_of
from strop.forecast.shape import Shape
from strop.runtime.memory import GIB

LENGTHS = Lengths(prompts=(50,), evals={"dev": (50,) * 64}, response=100, is_measured=False)
BASE = ["--model", "tiny", "--prompts.files", "a.jsonl", "--loop.steps", "1"]
SHAPE = Shape(
    weights=1_000_000, layers=4, hidden=64, vocabulary=5000, widest=256, cached=512, kept=9000, adapters=0,
    adapted=0, in_products=600_000,
)  # fmt: skip


def forecast(*flags, shape=SHAPE, updates=2):
    config = load_config([], [*BASE, *flags]).config
    return memory_of(config, shape, load_of(config, LENGTHS), Base(300 * MIB, 20 * MIB), updates=updates)


def part(memory, name):
    return {part.name: part.size for part in memory.parts}.get(name, 0)


def moments(memory):
    return {moment.name: moment.size for moment in memory.moments}


def test_training_all_weights_takes_their_gradients_and_two_moments():
    memory = forecast()
    sizes = [
        part(memory, name) for name in ("weights", "gradients", "optimizer", "engine weights", "reference")
    ]
    assert sizes == [4_000_000, 4_000_000, 8_000_000, 0, 0]


def test_adapters_have_gradients_and_moments_and_the_engine_a_merged_copy():
    shape = Shape(**{**{f: getattr(SHAPE, f) for f in SHAPE.__slots__}, "adapters": 1000, "adapted": 500_000})
    memory = forecast("--train.lora.rank", "8", shape=shape)
    names = ("adapters", "gradients", "optimizer", "engine weights")
    assert [part(memory, name) for name in names] == [4000, 4000, 8000, 2_000_000]
    kl = forecast("--train.lora.rank", "8", "--algo.kl_loss_coef", "0.1", shape=shape)
    assert part(kl, "reference") == 0, "the reference is the model with its adapters off"


def test_a_checkpoint_of_adapters_merges_them_into_a_copy():
    shape = Shape(**{**{f: getattr(SHAPE, f) for f in SHAPE.__slots__}, "adapters": 1000, "adapted": 500_000})
    assert "checkpoint" in moments(forecast("--train.lora.rank", "8", shape=shape))
    assert "checkpoint" not in moments(forecast())


def test_a_reference_is_the_model_once_more():
    assert part(forecast("--algo.kl_loss_coef", "0.1"), "reference") == 4_000_000


def test_teachers_are_in_memory_all_the_time():
    shape = Shape(**{**{f: getattr(SHAPE, f) for f in SHAPE.__slots__}, "teachers": 3_000_000})
    taught, alone = forecast("--algo.teacher.model", "tiny", shape=shape), forecast()
    assert (part(taught, "teachers"), part(alone, "teachers")) == (12_000_000, 0)
    assert all(moments(taught)[name] == size + 12_000_000 for name, size in moments(alone).items())


def test_a_critic_beside_adapters_has_gradients_as_large_as_itself():
    adapters = {**{f: getattr(SHAPE, f) for f in SHAPE.__slots__}, "adapters": 1000, "adapted": 500_000}
    flags = ("--train.lora.rank", "8", "--algo.type", "ppo")
    alone, found = (forecast(*flags, shape=Shape(**{**adapters, "critic": n})) for n in (0, 50_000_000))
    assert (part(found, "critic"), part(alone, "critic")) == (3 * 200_000_000, 0)
    assert moments(found)["update of the critic"] > moments(alone)["rollout"] + 4 * 200_000_000
    assert "update of the critic" not in moments(alone)


def test_a_bfloat16_engine_has_a_copy_and_half_the_cache():
    narrow, wide = forecast("--engine.dtype", "bfloat16"), forecast()
    assert part(narrow, "engine weights") == 2_000_000
    assert part(narrow, "KV cache") * 2 == part(wide, "KV cache")


def test_bfloat16_training_keeps_less_of_a_pass_and_copies_of_the_weights():
    narrow, wide = forecast("--train.dtype", "bfloat16"), forecast()
    assert part(narrow, "activations") < part(wide, "activations")
    assert part(narrow, "bfloat16 copies") == 2 * (600_000 + 5000 * 64)


def test_smaller_micro_batches_take_less_and_nothing_else_changes():
    small, large = forecast("--train.max_tokens_per_device", "512"), forecast()
    assert part(small, "activations") < part(large, "activations")
    assert part(small, "weights") == part(large, "weights")
    assert small.peak.size < large.peak.size


def test_the_first_update_has_no_moments_of_the_optimizer_before_it():
    found = moments(forecast())
    assert found["first update"] < found["later updates"]
    assert "later updates" not in moments(forecast(updates=1))


def test_evaluation_alone_counts_no_training():
    dev = ["--eval.datasets", '[{name = "dev", files = ["b"]}]']
    assert set(moments(forecast(*dev, updates=0))) == {"rollout", "evaluation of dev"}
    assert (
        moments(forecast(*dev, updates=0))["evaluation of dev"] < moments(forecast(*dev))["evaluation of dev"]
    )


def test_the_peak_is_the_largest_moment_in_bytes_and_gib():
    memory = forecast()
    assert memory.peak.size == max(moments(memory).values())
    assert memory.as_json()["peak_gib"] == pytest.approx(memory.peak.size / GIB)


def test_the_forecast_counts_with_the_sizes_that_engine_and_trainer_have():
    from strop.engines.local import decoder
    from strop.forecast import memory
    from strop.nn import logprobs

    assert (memory.PREFILL_TOKENS, memory.CHUNK) == (decoder.PREFILL_TOKENS, logprobs.CHUNK_BYTES)


def test_a_judge_beside_the_policy_is_there_all_the_time():
    shape = Shape(**{**{f: getattr(SHAPE, f) for f in SHAPE.__slots__}, "guests": 7_000_000})
    with_judge, without = forecast(shape=shape), forecast()
    assert part(with_judge, "judge") == 7_000_000
    assert {
        name: size - moments(without)[name] for name, size in moments(with_judge).items()
    } == dict.fromkeys(moments(without), 7_000_000)
