"""Generate functions with slime's signatures, run unchanged over HTTP: both forms, fan-out, faults."""

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cases import case
from scripted import LOGP, PROMPT, Noise
from slime_run import generate_of, runtime, samples_of

from strop.compat.client import post
from strop.compat.generation import GenerateState, get_model_url
from strop.compat.generation import generate as single_turn
from strop.compat.load import load
from strop.compat.sample import Sample
from strop.errors import PluginError
from strop.render.bytes import END_OF_TURN, ByteRenderer
from strop.sample import Status

EXAMPLE = Path(__file__).parents[3] / "examples/slime_functions/generate.py"


@pytest.fixture
async def run(tiny_dir):
    made = runtime(tiny_dir)
    yield made
    await made.close()


@pytest.fixture
async def raw(tiny_dir):
    """A run that renders no template."""
    made = runtime(tiny_dir, "--prompt-data /data.jsonl --prompts.chat_template false")
    yield made
    await made.close()


async def reply(args, sample, sampling_params):
    """The source's form: every field by hand."""
    ids = GenerateState(args).tokenizer.encode(sample.prompt, add_special_tokens=False)
    payload = {"input_ids": ids, "sampling_params": sampling_params, "return_logprob": True}
    output = await post(get_model_url(args, "policy"), payload)
    drawn = output["meta_info"]["output_token_logprobs"]
    sample.tokens = ids + [item[1] for item in drawn]
    sample.response, sample.response_length = output["text"], len(drawn)
    sample.rollout_log_probs = [item[0] for item in drawn]
    sample.loss_mask = [1] * len(drawn)
    sample.status = Sample.Status.COMPLETED
    return sample


async def test_a_function_of_the_sources_form_gives_exact_samples(run):
    engine = Noise()
    (sample,) = await samples_of(reply, run, engine=engine)
    prompt = ByteRenderer().prompt(PROMPT)
    assert (sample.error, sample.reward, sample.status) == (None, 1.0, Status.COMPLETED)
    assert (sample.tokens[: len(prompt)], sample.prompt_length) == (prompt, len(prompt))
    assert sample.tokens[-1] == END_OF_TURN
    assert sample.rollout_log_probs == pytest.approx([LOGP] * 5)
    assert sample.weight_versions == ["0"]
    assert engine.requests[0].ids.tolist() == prompt


async def test_the_single_turn_of_slime_is_there(run):
    (sample,) = await samples_of(single_turn, run)
    assert (sample.error, sample.effective_response_length) == (None, 5)


async def test_samples_of_a_group_draw_their_own_noise_and_the_same_again(tiny_dir):
    texts = []
    for _ in range(2):
        made = runtime(tiny_dir)
        texts.append([s.response for s in await samples_of(reply, made, size=4)])
        await made.close()
    assert texts[0] == texts[1]
    assert len(set(texts[0])) == 4


async def test_a_function_of_the_pages_form_is_given_one_sample_in_a_list(raw):
    seen = []

    async def custom_generate(args, samples, evaluation=False):
        for sample in samples:
            seen.append((sample.prompt, len(samples), evaluation))
            messages = [{"role": "user", "content": sample.prompt}]
            tokenizer = GenerateState(args).tokenizer
            sample.tokens = tokenizer.apply_chat_template(messages, add_generation_prompt=True)
            output = await post(
                get_model_url(args, "policy"), {"input_ids": sample.tokens, "return_logprob": True}
            )
            drawn = output["meta_info"]["output_token_logprobs"]
            sample.append_response_tokens(
                args,
                tokens=[id for _, id, _ in drawn],
                log_probs=[logp for logp, _, _ in drawn],
                meta_info=output["meta_info"],
                text=output["text"],
            )
            sample.reward = 0.5
        return samples

    samples = await samples_of(custom_generate, raw, size=2)
    assert seen == [(PROMPT.messages, 1, False)] * 2
    assert [(s.error, s.reward) for s in samples] == [(None, 0.5)] * 2
    assert samples[0].tokens[: samples[0].prompt_length] == ByteRenderer().prompt(PROMPT)
    assert samples[0].response != samples[1].response


async def test_several_samples_are_parts_of_one_trajectory(run):
    async def generate(args, sample, sampling_params):
        first, second = copy.deepcopy(sample), copy.deepcopy(sample)
        return [await reply(args, one, sampling_params) for one in (first, second)]

    samples = await samples_of(generate, run, size=2)
    assert [s.trajectory_id for s in samples] == [0, 0, 1, 1]
    assert len({s.index for s in samples}) == 4
    assert len({s.response for s in samples}) == 4


async def test_what_a_function_needs_by_name_and_nobody_passes_is_refused_at_the_start(run):
    async def generate(args, sample, sampling_params, *, state):
        return sample

    with pytest.raises(PluginError, match="none of slime's signatures"):
        generate_of(generate, run)


async def test_evaluation_is_passed_to_functions_that_have_it(run):
    seen = []

    async def generate(args, sample, sampling_params, evaluation):
        seen.append(evaluation)
        return await reply(args, sample, sampling_params)

    with pytest.raises(PluginError, match="none of slime's signatures"):
        generate_of(generate, run)

    async def right(args, sample, sampling_params, evaluation=False):
        return await generate(args, sample, sampling_params, evaluation)

    await samples_of(right, run)
    assert seen == [False]


def changing(**fields):
    async def generate(args, sample, sampling_params):
        await reply(args, sample, sampling_params)
        for name, value in fields.items():
            setattr(sample, name, value)
        return sample

    return generate


async def returns_none(args, sample, sampling_params):
    return None


async def reads_what_is_not_there(args, sample, sampling_params):
    return args.micro_batch_size


async def asks_without_log_probs(args, sample, sampling_params):
    ids = GenerateState(args).tokenizer.encode(sample.prompt)
    output = await post(get_model_url(args, "policy"), {"input_ids": ids, "sampling_params": sampling_params})
    sample.tokens, sample.response_length = ids + output["output_ids"], len(output["output_ids"])
    sample.status = Sample.Status.COMPLETED
    return sample


async def asks_at_another_temperature(args, sample, sampling_params):
    return await reply(args, sample, {**sampling_params, "temperature": 0.3})


FAULTS = {
    "returns None": (returns_none, "TypeError: expected a Sample or a list of them, got None"),
    "reads what is not there": (reads_what_is_not_there, "has no attribute 'micro_batch_size'"),
    "no log-probs": (asks_without_log_probs, "ValueError: sample.rollout_log_probs is None, but 5 tokens"),
    "another temperature": (
        asks_at_another_temperature,
        "sampling_params.temperature = 0.3, but the run has",
    ),
    "mask too short": (changing(loss_mask=[1]), "loss_mask has 1 numbers for 5 response tokens"),
    "tokens of another prompt": (changing(tokens=[7] * 30), "must begin with the"),
    "no status": (changing(status=Sample.Status.PENDING), "status is still pending"),
    "failed": (changing(status=Sample.Status.FAILED), "status to failed"),
    "reward without its key": (changing(reward={"acc": 1}), "the reward is a table of 'acc'; name one"),
}


async def test_a_fault_is_recorded_on_its_sample(run):
    for name, (fn, error) in FAULTS.items():
        with case(name):
            (sample,) = await samples_of(fn, run)
            assert (sample.status, sample.reward) == (Status.FAILED, None)
            assert error in sample.error
            assert "\n" not in sample.error


async def test_an_aborted_sample_is_dropped_by_name_not_rewarded(run):
    (sample,) = await samples_of(changing(status=Sample.Status.ABORTED), run)
    assert (sample.status, sample.reward) == (Status.ABORTED, None)


async def four(args, sample, sampling_params, evaluation): ...
async def one(args): ...
async def unknown_option(args, samples, retries=3): ...


@pytest.mark.parametrize("fn", [four, one, unknown_option])
def test_a_signature_that_is_none_of_slimes_is_refused(tiny_dir, fn):
    run = runtime(tiny_dir, serves=False)
    with pytest.raises(PluginError) as caught:
        generate_of(fn, run)
    assert "is none of slime's signatures here: (args, sample, sampling_params, [evaluation])" in str(
        caught.value
    )


def test_a_wrong_path_is_one_line():
    cases = [
        ("nowhere.py", "no file"),
        (
            str(EXAMPLE.with_name("reward.py")),
            "which of share_of_digits, reward_func, batched_custom_rm? say ",
        ),
        ("no.such.module.fn", "no module 'no'"),
        (f"{EXAMPLE}:genrate", "did you mean 'generate'?"),
    ]
    for where, message in cases:
        with case(where):
            with pytest.raises(PluginError) as caught:
                load(f"slime:{where}", key="rollout.generate")
            assert message in str(caught.value)
            assert "\n" not in str(caught.value)


def test_a_file_alone_names_the_function_that_is_called_like_it(tmp_path):
    (tmp_path / "custom_generate.py").write_text(
        "def helper(): ...\n\nasync def custom_generate(args, s): ...\n"
    )
    assert load(f"slime:{tmp_path}/custom_generate.py", key="k").__name__ == "custom_generate"
    (tmp_path / "only.py").write_text("def _private(): ...\n\nasync def mine(args, s): ...\n")
    assert load(f"slime:{tmp_path}/only.py", key="k").__name__ == "mine"


async def test_the_example_with_a_tool_trains_no_token_of_the_tool(run):
    fn = load(f"slime:{EXAMPLE}:custom_generate", key="rollout.generate")
    (sample,) = await samples_of(fn, run, engine=Digits())
    assert (sample.error, sample.response) == (None, "12" + "12" + "34" + "34" + "done")
    trained = [
        id for id, mask in zip(sample.tokens[sample.prompt_length :], sample.loss_mask, strict=True) if mask
    ]
    assert bytes(i for i in trained if i < END_OF_TURN) == b"1234done"


class Digits(Noise):
    """Says 12, then 34, then that it is done."""

    async def generate(self, request):
        text = (b"12", b"34", b"done")[len(self.requests)]
        made = await super().generate(request)
        ids = [*text, END_OF_TURN]
        logp, versions = np.full(len(ids), -0.5, np.float32), np.zeros(len(ids), np.int32)
        return replace(made, ids=np.array(ids, np.int32), logp=logp, versions=versions)


async def test_a_token_changed_after_it_was_drawn_was_trained_without_a_word(run):
    async def swaps(args, sample, sampling_params):
        made = await reply(args, sample, sampling_params)
        made.tokens[-1] = 5
        return made

    (sample,) = await samples_of(swaps, run, engine=Noise())
    assert "is 5, with the log-prob -" in sample.error
    assert "which the engine did not draw" in sample.error


async def test_tokens_put_in_by_a_function_are_not_trained_and_need_not_be_drawn(run):
    async def adds(args, sample, sampling_params):
        made = await reply(args, sample, sampling_params)
        made.append_response_tokens(args, tokens=[5, 6], trainable=False)
        return made

    (sample,) = await samples_of(adds, run, engine=Noise())
    assert (sample.error, sample.loss_mask[-3:]) == (None, [1, 0, 0])
