"""Every transport keeps the seam's promises. A new one is a line in `TRANSPORTS`."""

import asyncio
from contextlib import asynccontextmanager, suppress

import numpy as np
import pytest
import torch
from eager import eager_logits
from fresh import fresh

from strop.engines.base import Request
from strop.engines.local.engine import LocalEngine
from strop.nn.loading import load_model
from strop.nn.tiny import make_tiny
from strop.runtime.compute import Compute
from strop.sample import Sampling
from strop.sync.share import Share

PROMPT = [10, 20, 30]


@asynccontextmanager
async def serving(model, transport):
    """An engine of `model` and the transport to it."""
    compute = Compute()
    engine = LocalEngine(model, compute, max_tokens=2048, stop_ids=())
    task = asyncio.ensure_future(engine.serve())
    try:
        yield engine, transport(engine)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        compute.close()


TRANSPORTS = {"share": Share}


@pytest.fixture(params=TRANSPORTS)
def transport(request):
    return TRANSPORTS[request.param]


@pytest.fixture
def new(tmp_path):
    """Another model of the same shape."""
    return fresh(make_tiny(tmp_path / "new", seed=2))


def weights_of(model):
    return ((name, parameter.detach()) for name, parameter in model.named_parameters())


def request_of(id, n=12):
    sampling = Sampling(max_tokens=n, temperature=1.0)
    return Request(id=id, ids=np.array(PROMPT, np.int32), sampling=sampling, seed=3)


def logp_under(model, completion):
    """Of the drawn tokens by one plain forward."""
    ids = PROMPT + completion.ids.tolist()
    logp = torch.log_softmax(eager_logits(model, ids), -1)
    at = np.arange(len(PROMPT), len(ids))
    return logp[at - 1, completion.ids.astype(np.int64)].numpy()


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-4), (torch.bfloat16, 0.1)])
async def test_after_a_push_the_engine_draws_with_the_weights_and_their_version(
    transport, tiny_dir, new, dtype, tolerance
):
    async with serving(load_model(tiny_dir, dtype), transport) as (engine, sync):
        await engine.generate(request_of("before"))
        await sync.push(weights_of(new), 7)
        after = await engine.generate(request_of("after"))
        assert (await engine.health())["version"] == 7
    assert set(after.versions.tolist()) == {7}
    np.testing.assert_allclose(after.logp, logp_under(new, after), atol=tolerance)


async def test_a_push_leaves_the_senders_weights_as_they_are(transport, tiny, new):
    before = {name: tensor.clone() for name, tensor in weights_of(new)}
    async with serving(tiny, transport) as (engine, sync):
        await sync.push(weights_of(new), 1)
        await engine.generate(request_of("a"))
    assert all(torch.equal(before[name], tensor) for name, tensor in weights_of(new))


async def test_an_engine_that_shares_the_tensors_gets_the_version_all_the_same(transport, tiny):
    async with serving(tiny, transport) as (engine, sync):
        first = await engine.generate(request_of("a"))
        await sync.push(weights_of(tiny), 1)
        second = await engine.generate(request_of("b"))
    assert first.ids.tolist() == second.ids.tolist()
    assert set(second.versions.tolist()) == {1}


async def test_a_push_under_way_requests_loses_no_token(transport, tiny, new):
    async with serving(tiny, transport) as (engine, sync):
        task = asyncio.ensure_future(engine.generate(request_of("a", n=40)))
        while (await engine.health())["running"] == 0:  # noqa: ASYNC110 - the seam has no event
            await asyncio.sleep(0)
        await sync.push(weights_of(new), 1)
        completion = await task
    assert (completion.finish, len(completion.ids)) == ("length", 40)
    assert completion.versions.tolist() == sorted(completion.versions.tolist())
    assert completion.versions[-1] == 1


async def test_pushes_follow_each_other(transport, tiny_dir, tiny, new):
    async with serving(tiny, transport) as (engine, sync):
        old = fresh(tiny_dir)
        first = await engine.generate(request_of("a"))
        await sync.push(weights_of(new), 1)
        await sync.push(weights_of(old), 2)
        again = await engine.generate(request_of("b"))
    assert again.ids.tolist() == first.ids.tolist()
    assert set(again.versions.tolist()) == {2}
