"""The local engine against the model's own plain forward and transformers' generate."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import numpy as np
import pytest
import torch
from eager import eager_logits, of_transformers
from fresh import fresh

from strop.engines.base import Completion, Request
from strop.engines.local.engine import LocalEngine
from strop.engines.local.stopping import Decode
from strop.errors import EngineFailed, TooLong
from strop.nn.loading import CausalLM, load_model
from strop.render.bytes import ByteRenderer
from strop.runtime.compute import Compute
from strop.sample import Sampling

STOP = 256
PROMPTS = [[10, 20, 30], list(range(40, 57)), [7], [10, 20, 30]]


@asynccontextmanager
async def engine_of(
    model: CausalLM,
    *,
    max_tokens: int = 4096,
    stop_ids: tuple[int, ...] = (STOP,),
    decode: Decode | None = None,
) -> AsyncIterator[LocalEngine]:
    compute = Compute()
    engine = LocalEngine(model, compute, max_tokens=max_tokens, stop_ids=stop_ids, decode=decode)
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(engine.serve())
        try:
            yield engine
        finally:
            serving.cancel()
    compute.close()


def request(
    i: int, ids: list[int], *, n: int = 12, temperature: float = 1.0, seed: int | None = None
) -> Request:
    sampling = Sampling(max_tokens=n, temperature=temperature)
    return Request(
        id=str(i), ids=np.array(ids, np.int32), sampling=sampling, seed=i if seed is None else seed
    )


async def tokens_drawn(engine: LocalEngine, n: int) -> None:
    """Let the engine work until it has drawn `n` tokens."""
    while engine.tokens_drawn < n:  # noqa: ASYNC110 - a counter, not an event, is what the engine offers
        await asyncio.sleep(0)


async def complete(model: CausalLM, requests: list[Request], **keys: int) -> list[Completion]:
    async with engine_of(model, **keys) as engine:
        return await asyncio.gather(*(engine.generate(r) for r in requests))


def teacher_forced(
    model: CausalLM, prompt: list[int], completion: Completion, temperature: float
) -> np.ndarray:
    """Log-probs of the drawn tokens by one plain forward over the whole sequence."""
    logp = torch.log_softmax(eager_logits(model, prompt + completion.ids.tolist()) / temperature, -1)
    rows = np.arange(len(prompt) - 1, len(prompt) - 1 + len(completion.ids))
    return logp[rows, completion.ids.astype(np.int64)].numpy()


async def test_greedy_equals_transformers_generate(tiny_dir, tiny):
    plain = of_transformers(tiny_dir)
    ours = await complete(tiny, [request(i, p, n=20, temperature=0) for i, p in enumerate(PROMPTS)])
    for prompt, completion in zip(PROMPTS, ours, strict=True):
        theirs = plain.generate(torch.tensor([prompt]), max_new_tokens=20, do_sample=False, eos_token_id=STOP)
        assert completion.ids.tolist() == theirs[0, len(prompt) :].tolist()


@pytest.mark.parametrize("temperature", [1.0, 0.6])
async def test_logprobs_equal_a_teacher_forced_forward(tiny, temperature):
    ours = await complete(tiny, [request(i, p, temperature=temperature) for i, p in enumerate(PROMPTS)])
    for prompt, completion in zip(PROMPTS, ours, strict=True):
        expected = teacher_forced(tiny, prompt, completion, temperature)
        np.testing.assert_allclose(completion.logp, expected, atol=1e-4)


async def test_noise_depends_on_seed_and_position_not_on_the_batch(tiny):
    alone = await complete(tiny, [request(3, PROMPTS[0], seed=99)])
    crowd = await complete(
        tiny, [request(i, PROMPTS[i % 4], seed=i) for i in range(9)] + [request(9, PROMPTS[0], seed=99)]
    )
    assert crowd[-1].ids.tolist() == alone[0].ids.tolist()
    assert crowd[0].ids.tolist() != alone[0].ids.tolist()


async def test_same_requests_give_the_same_bits(tiny):
    requests = [request(i, PROMPTS[i % 4]) for i in range(9)]
    one, two = await complete(tiny, requests), await complete(tiny, requests)
    assert all(
        a.ids.tolist() == b.ids.tolist() and a.logp.tobytes() == b.logp.tobytes()
        for a, b in zip(one, two, strict=True)
    )


async def test_samples_of_one_prompt_share_one_prefill(tiny, monkeypatch):
    fed = []
    trunk = tiny.trunk
    monkeypatch.setattr(tiny, "trunk", lambda ids, *rest: (fed.append(ids.numel()), trunk(ids, *rest))[1])
    await complete(tiny, [request(i, PROMPTS[1], n=1) for i in range(8)])
    assert fed == [len(PROMPTS[1])]


async def test_drawn_tokens_follow_the_distribution(tiny):
    drawn = await complete(
        tiny, [request(i, [5], n=1, temperature=0.3) for i in range(2000)], max_tokens=64 * 2100
    )
    counts = np.bincount([int(c.ids[0]) for c in drawn], minlength=tiny.vocab_size)
    p = torch.softmax(eager_logits(tiny, [5])[-1] / 0.3, -1).numpy()
    # each count is binomial; 5 sigma over 264 tokens would be one false alarm in ten thousand seeds
    assert (np.abs(counts - 2000 * p) < 5 * np.sqrt(2000 * p * (1 - p)) + 1).all()


async def test_requests_beyond_the_cache_wait_their_turn(tiny):
    requests, most = [request(i, PROMPTS[i % 4], n=6) for i in range(5)], 0
    async with engine_of(tiny, max_tokens=64) as engine:
        tasks = [asyncio.ensure_future(engine.generate(r)) for r in requests]
        while not all(task.done() for task in tasks):
            await asyncio.sleep(0)
            most = max(most, (await engine.health())["running"])
    assert most == 2
    roomy = await complete(tiny, requests)
    assert [task.result().ids.tolist() for task in tasks] == [c.ids.tolist() for c in roomy]


@pytest.mark.parametrize("id", [-1, 10**6])
async def test_an_id_that_the_model_does_not_have_is_refused_and_the_engine_goes_on(tiny, id):
    async with engine_of(tiny) as engine:
        sampling = Sampling(max_tokens=2)
        with pytest.raises(ValueError, match=rf"id {id} is none of the model's {tiny.vocab_size}"):
            await engine.generate(
                Request(id="bad", ids=np.array([10, id], np.int32), sampling=sampling, seed=0)
            )
        good = Request(id="good", ids=np.array([10], np.int32), sampling=sampling, seed=0)
        assert len((await engine.generate(good)).ids) > 0


async def test_request_that_never_fits_is_refused_with_the_way_out(tiny):
    engine = LocalEngine(tiny, Compute(), max_tokens=512, stop_ids=(STOP,))
    expected = r"1000 tokens and 12 to draw are 1012, but the engine holds 512 .*raise engine.max_tokens"
    with pytest.raises(TooLong, match=expected):
        await engine.generate(request(0, [1] * 1000))


async def test_request_that_just_fits_is_served(tiny):
    (completion,) = await complete(tiny, [request(0, [1] * 116, n=12)], max_tokens=128)
    assert len(completion.ids) > 0


async def test_stop_id_ends_a_completion_and_is_kept(tiny):
    (first,) = await complete(tiny, [request(0, PROMPTS[0], seed=11)])
    stop = int(first.ids[2])
    sampling = Sampling(max_tokens=12, stop_token_ids=(stop,))
    (again,) = await complete(tiny, [Request("0", np.array(PROMPTS[0], np.int32), sampling, seed=11)])
    assert again.finish == "stop"
    assert again.ids.tolist() == first.ids[: list(first.ids).index(stop) + 1].tolist()


async def test_length_ends_a_completion(tiny):
    (completion,) = await complete(tiny, [request(0, PROMPTS[0], n=3, seed=11)])
    assert (completion.finish, len(completion.ids)) == ("length", 3)


async def test_abort_keeps_the_tokens_drawn_so_far_and_spares_the_others(tiny):
    async with engine_of(tiny) as engine:
        whole = await engine.generate(request(0, PROMPTS[1], n=30, seed=5))
        drawn = engine.tokens_drawn
        part = asyncio.ensure_future(engine.generate(request(1, PROMPTS[1], n=30, seed=5)))
        other = asyncio.ensure_future(engine.generate(request(2, PROMPTS[0], n=30, seed=11)))
        await tokens_drawn(engine, drawn + 10)
        await engine.abort({"1"})
        aborted, spared = await part, await other
        again = await engine.generate(request(3, PROMPTS[0], n=30, seed=11))
    assert aborted.finish == "abort"
    assert 5 <= len(aborted.ids) < len(whole.ids)
    assert aborted.ids.tolist() == whole.ids[: len(aborted.ids)].tolist()
    assert spared.ids.tolist() == again.ids.tolist()


async def test_cancelled_request_leaves_nothing_behind(tiny):
    async with engine_of(tiny) as engine:
        task = asyncio.ensure_future(engine.generate(request(1, PROMPTS[1], n=200, seed=5)))
        await tokens_drawn(engine, 3)
        task.cancel()
        await asyncio.wait({task})
        later = await engine.generate(request(1, PROMPTS[0], n=12, seed=11))
        assert (await engine.health())["running"] == 0
    (alone,) = await complete(tiny, [request(1, PROMPTS[0], n=12, seed=11)])
    assert later.ids.tolist() == alone.ids.tolist()


async def test_nothing_is_drawn_between_pause_and_resume(tiny):
    async with engine_of(tiny) as engine:
        task = asyncio.ensure_future(engine.generate(request(0, PROMPTS[1], n=20, seed=5)))
        await tokens_drawn(engine, 3)
        await engine.pause()
        drawn = engine.tokens_drawn
        for _ in range(100):
            await asyncio.sleep(0)
        assert engine.tokens_drawn == drawn
        await engine.resume()
        assert len((await task).ids) > drawn


async def test_request_after_the_end_of_serve_fails_at_once(tiny):
    async with engine_of(tiny) as engine:
        await engine.generate(request(0, PROMPTS[0]))
    with pytest.raises(EngineFailed, match="closed"):
        await engine.generate(request(0, PROMPTS[0]))


async def test_greedy_reports_logprobs_at_temperature_one(tiny):
    (completion,) = await complete(tiny, [request(0, PROMPTS[1], temperature=0)])
    np.testing.assert_allclose(completion.logp, teacher_forced(tiny, PROMPTS[1], completion, 1.0), atol=1e-4)


async def switched(model: CausalLM, other: CausalLM, *, seed: int) -> tuple[Completion, Completion]:
    """A completion with new weights after some tokens, and the new weights continuing from those tokens."""
    async with engine_of(model) as engine:
        task = asyncio.ensure_future(engine.generate(request(0, PROMPTS[1], n=40, seed=seed)))
        await tokens_drawn(engine, 8)
        await engine.load(((n, p.detach()) for n, p in other.named_parameters()), 1)
        mixed = await task
        old = int((mixed.versions == 0).sum())
        prefix = PROMPTS[1] + mixed.ids[:old].tolist()
        begun = await engine.generate(request(1, prefix, n=40 - old, seed=seed))
    return mixed, begun


async def test_new_weights_between_steps_recompute_the_cache(tiny_dir, tmp_path):
    from strop.nn.tiny import make_tiny

    old, new = fresh(tiny_dir), fresh(make_tiny(tmp_path / "b", seed=2))
    mixed, begun = await switched(old, new, seed=4)
    num_old = int((mixed.versions == 0).sum())
    assert 0 < num_old < len(mixed.ids)
    assert mixed.versions.tolist() == [0] * num_old + [1] * (len(mixed.ids) - num_old)
    assert mixed.ids[num_old:].tolist() == begun.ids.tolist()
    np.testing.assert_allclose(mixed.logp[num_old:], begun.logp, atol=1e-5)


async def test_broken_weights_break_the_engine_with_one_line(tiny):
    with torch.no_grad():
        tiny.head_VD.fill_(float("nan"))
    with pytest.raises(BaseExceptionGroup) as caught:
        await complete(tiny, [request(0, PROMPTS[0])])
    assert caught.group_contains(EngineFailed, match="logits are not finite")


async def test_health_tells_the_version_and_the_load(tiny):
    async with engine_of(tiny) as engine:
        await engine.generate(request(0, PROMPTS[0]))
        health = await engine.health()
        assert health == {"version": 0, "running": 0, "waiting": 0, "cache_tokens": health["cache_tokens"]}
        await engine.release()
        assert (await engine.health())["cache_tokens"] == 0


async def test_bfloat16_engine_draws_within_its_precision(tiny_dir, tiny):
    half = load_model(tiny_dir, torch.bfloat16)
    (completion,) = await complete(half, [request(0, PROMPTS[1])])
    np.testing.assert_allclose(completion.logp, teacher_forced(tiny, PROMPTS[1], completion, 1.0), atol=0.1)


def saying(text: str, *, n: int = 40, **keys) -> Request:
    sampling = Sampling(max_tokens=n, stop=(text,), **keys)
    return Request(text, np.array(PROMPTS[1], np.int32), sampling, seed=5)


async def test_stop_text_ends_a_completion_in_any_company_and_not_because_of_the_prompt(tiny):
    decode = ByteRenderer().decode
    async with engine_of(tiny, decode=decode) as engine:
        free = await engine.generate(request(0, PROMPTS[1], n=40, seed=5))
        at = next(i for i in range(9, 40) if free.ids[i] < 128)
        text = decode([int(free.ids[at])])
        first = decode(free.ids.tolist()).index(text)
        alone = await engine.generate(saying(text))
        crowd = await asyncio.gather(
            *(engine.generate(request(i, PROMPTS[i % 4], n=9 + i)) for i in range(5)),
            engine.generate(saying(text)),
            engine.generate(saying(decode(PROMPTS[1]))),
        )
    assert (alone.finish, alone.ids.tolist()) == ("stop", free.ids[: len(alone.ids)].tolist())
    assert decode(alone.ids.tolist()).index(text) == first
    assert crowd[-2].ids.tolist() == alone.ids.tolist()
    assert crowd[-1].ids.tolist() == free.ids.tolist()


async def test_stop_texts_without_a_decoder_are_refused(tiny):
    async with engine_of(tiny) as engine:
        with pytest.raises(ValueError, match="decode"):
            await engine.generate(saying("a"))
        assert (await engine.health())["waiting"] == 0


async def test_ignored_eos_does_not_end_a_completion_but_other_stop_ids_do(tiny):
    with torch.no_grad():
        tiny.module.model.norm.weight.fill_(0)  # all tokens are equally likely
    async with engine_of(tiny, stop_ids=()) as engine:
        drawn = (await engine.generate(request(0, [1], n=24))).ids.tolist()
    async with engine_of(tiny, stop_ids=(drawn[8],)) as engine:
        plain, ignoring, other = await asyncio.gather(
            engine.generate(request(0, [1], n=24)),
            *(
                engine.generate(Request(str(stops), np.array([1], np.int32), sampling, seed=0))
                for stops in ((), (drawn[16],))
                for sampling in [Sampling(max_tokens=24, ignore_eos=True, stop_token_ids=stops)]
            ),
        )
    assert plain.ids.tolist() == drawn[: drawn.index(drawn[8]) + 1]
    assert (ignoring.finish, ignoring.ids.tolist()) == ("length", drawn)
    assert (other.finish, other.ids.tolist()) == ("stop", drawn[: drawn.index(drawn[16]) + 1])
