"""`/generate` on the loopback: what it takes, how it answers, what it refuses."""

import numpy as np
import pytest
from cases import case
from scripted import Noise

from strop.compat.client import get, post
from strop.compat.endpoint import Endpoint, Turn, parameters
from strop.compat.tokenizer import ByteTokenizer
from strop.engines.base import Completion
from strop.errors import TooLong
from strop.render.bytes import ByteRenderer
from strop.rollout.hooks import Occasion
from strop.sample import Sampling

RUN = Sampling(max_tokens=40, temperature=0.8, top_p=0.9, stop=("END",), stop_token_ids=(7,))

STEP = Occasion(2, is_eval=False)


class Recording(Noise):
    """Keeps sets with its tokens, as an engine does below top_p = 1."""

    async def generate(self, request):
        made = await super().generate(request)
        n = len(made.ids)
        extras = {"top_p_token_ids": np.zeros(n, np.int32), "top_p_token_offsets": np.arange(n + 1)}
        return Completion(made.ids, made.logp, np.full(n, 4, np.int32), made.finish, extras)


@pytest.fixture
async def open_endpoint():
    """Makes one that answers from an engine; all are closed behind the test."""
    made = []

    async def opened(engine=None, occasion=STEP):
        endpoint = Endpoint(seed=0, encode=ByteTokenizer().encode)
        made.append(endpoint)
        await endpoint.begin(Turn(engine or Recording(), ByteRenderer(), RUN, occasion))
        return endpoint

    yield opened
    for endpoint in made:
        await endpoint.close()


def url(endpoint, path="/generate"):
    return "http://{}:{}{}".format(*endpoint.address, path)


async def test_it_answers_as_sglang_does(open_endpoint):
    engine = Recording()
    endpoint = await open_endpoint(engine)
    output = await post(url(endpoint), {"input_ids": [72, 105], "return_logprob": True, "rid": "mine"})
    meta = output["meta_info"]
    assert output["output_ids"] == [id for _, id, _ in meta["output_token_logprobs"]]
    assert output["text"] == bytes(output["output_ids"][:4]).decode()
    assert (meta["id"], meta["finish_reason"], meta["weight_version"]) == ("mine", {"type": "stop"}, "4")
    assert (meta["prompt_tokens"], meta["completion_tokens"], meta["cached_tokens"]) == (2, 5, 0)
    assert meta["top_p_token_offsets"] == [0, 1, 2, 3, 4, 5]
    assert endpoint.version == 4
    assert engine.requests[0].ids.tolist() == [72, 105]


async def test_without_return_logprob_there_are_none(open_endpoint):
    output = await post(url(await open_endpoint()), {"input_ids": [72]})
    assert "output_token_logprobs" not in output["meta_info"]


async def test_what_a_request_does_not_say_is_the_runs(open_endpoint):
    engine = Recording()
    endpoint = await open_endpoint(engine)
    await post(url(endpoint), {"input_ids": [72]})
    sent = {**parameters(RUN, seed=1), "max_new_tokens": 3, "stop": "</answer>"}
    await post(url(endpoint), {"text": "Hi", "sampling_params": sent, "return_logprob": True})
    first, second = (request.sampling for request in engine.requests)
    assert first == RUN
    assert (second.max_tokens, second.stop, second.temperature) == (3, ("</answer>",), 0.8)
    assert engine.requests[1].ids.tolist() == [72, 105]


async def test_none_is_as_if_it_were_not_there(open_endpoint):
    engine = Recording()
    unset = dict.fromkeys(("max_new_tokens", "temperature", "stop", "stop_token_ids", "n"))
    await post(url(await open_endpoint(engine)), {"input_ids": [72], "sampling_params": unset})
    assert engine.requests[0].sampling == RUN


async def test_a_judge_may_be_asked_at_another_temperature_without_log_probs(open_endpoint):
    engine = Recording()
    endpoint = await open_endpoint(engine)
    await post(url(endpoint), {"input_ids": [72], "sampling_params": {"temperature": 0, "top_p": 1.0}})
    assert (engine.requests[0].sampling.temperature, engine.requests[0].sampling.top_p) == (0, 1.0)


async def test_equal_requests_draw_anew_and_a_resumed_step_draws_the_same(open_endpoint):
    async def drawn(occasion):
        endpoint = await open_endpoint(occasion=occasion)
        return [(await post(url(endpoint), {"input_ids": [72]}))["text"] for _ in range(3)]

    first, again, later = [await drawn(Occasion(step, is_eval=False)) for step in (2, 2, 3)]
    assert first == again
    assert len({*first, *later}) == 6


async def test_a_seed_of_the_sample_makes_the_noise_its_own(open_endpoint):
    endpoint = await open_endpoint()
    texts = [
        (await post(url(endpoint), {"input_ids": [72], "sampling_params": {"sampling_seed": seed}}))["text"]
        for seed in (1, 2, 1)
    ]
    assert len(set(texts)) == 3


REFUSED = [
    ({}, "expected input_ids, a list of ids, or text"),
    ({"input_ids": []}, "expected input_ids"),
    ({"input_ids": [[1], [2]]}, "of one prompt"),
    ({"text": ["a", "b"]}, "of one prompt"),
    ([1], "expected an object"),
    (
        {"input_ids": [1], "sampling_params": {"temprature": 1}},
        "sampling_params.temprature is not supported; did",
    ),
    ({"input_ids": [1], "sampling_params": {"n": 4}}, "one completion a request"),
    ({"input_ids": [1], "sampling_params": {"regex": "a"}}, "sampling_params.regex is not supported"),
    (
        {"input_ids": [1], "sampling_params": {"top_p": 1.0}, "return_logprob": True},
        "sampling_params.top_p = 1.0, but the run has 0.9, and tokens are trained as drawn",
    ),
    ({"input_ids": [-1]}, "expected input_ids"),
    ({"input_ids": [2**40]}, "expected input_ids"),
    ({"input_ids": [1], "sampling_params": [1]}, "expected sampling_params, an object, got [1]"),
    (
        {"input_ids": [1], "sampling_params": {"max_new_tokens": "many"}},
        "sampling_params.max_new_tokens = 'many': Expected `int`, got `str`",
    ),
    (
        {"input_ids": [1], "sampling_params": {"temperature": -1}},
        "sampling_params.temperature = -1: Expected",
    ),
    ({"input_ids": [1], "sampling_params": {"stop": 5}}, "sampling_params.stop = 5: Expected"),
]


async def test_what_it_cannot_do_is_refused_at_once(open_endpoint):
    endpoint = url(await open_endpoint())
    for payload, message in REFUSED:
        with case(payload):
            with pytest.raises(ValueError, match="400: /generate: ") as caught:
                await post(endpoint, payload)
            assert message in str(caught.value)


async def test_a_sequence_that_the_engine_cannot_hold_is_refused(open_endpoint):
    class Full(Noise):
        async def generate(self, request):
            raise TooLong("3 tokens and 40 to draw are 43, but the engine holds 32")

    with pytest.raises(ValueError, match="but the engine holds 32"):
        await post(url(await open_endpoint(Full())), {"input_ids": [1]})


async def test_it_listens_on_this_machine_alone_and_not_after_the_run(open_endpoint):
    endpoint = await open_endpoint()
    assert endpoint.address[0] == "127.0.0.1"
    assert await get(url(endpoint, "/health")) == "ok"
    await endpoint.close()
    await endpoint.close()
    with pytest.raises(OSError, match=r"Cannot connect|Connect call failed"):
        await get(url(endpoint, "/health"), max_retries=0)


async def test_two_runs_have_two_addresses(open_endpoint):
    one, two = await open_endpoint(), await open_endpoint()
    assert one.address != two.address
