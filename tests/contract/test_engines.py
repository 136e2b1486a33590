"""Every engine keeps the seam's promises. A new one is a line in `ENGINES`."""

import asyncio
from contextlib import asynccontextmanager, suppress

import numpy as np
import pytest
from fresh import fresh

from strop.engines.base import Request
from strop.engines.local.engine import LocalEngine
from strop.errors import EngineFailed, TooLong
from strop.kept import Kept
from strop.nn.tiny import make_tiny
from strop.render.bytes import ByteRenderer
from strop.runtime.compute import Compute
from strop.sample import Sampling

PROMPT = list(range(40, 57))
LONG = 32


@asynccontextmanager
async def local(directory):
    """No stop ids of its own: what a random model says would be cut anywhere."""
    compute = Compute()
    engine = LocalEngine(
        fresh(directory),
        compute,
        max_tokens=4096,
        stop_ids=(),
        decode=ByteRenderer().decode,
    )
    serving = asyncio.ensure_future(engine.serve())
    try:
        yield engine
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving
        compute.close()


ENGINES = {"local": local}


@pytest.fixture(params=ENGINES)
def serve(request, tiny_dir):
    """Serves an engine of the tiny model, for the length of a block."""
    return lambda: ENGINES[request.param](tiny_dir)


@pytest.fixture(scope="module")
def other_weights(tmp_path_factory):
    """Names and tensors of another tiny model."""
    model = fresh(make_tiny(tmp_path_factory.mktemp("other") / "tiny", seed=2))
    return lambda: iter([(name, parameter.detach()) for name, parameter in model.named_parameters()])


def request_of(id="0", *, ids=PROMPT, n=12, seed=5, temperature=1.0, stop=()):
    sampling = Sampling(max_tokens=n, temperature=temperature, stop_token_ids=tuple(stop))
    return Request(id=id, ids=np.array(ids, np.int32), sampling=sampling, seed=seed)


async def draws(engine, *, whether=True):
    """Wait until it draws for someone, or for nobody."""
    while bool((await engine.health())["running"]) is not whether:  # noqa: ASYNC110 - the seam has no event
        await asyncio.sleep(0)


@asynccontextmanager
async def running(engine, request):
    """The request's task, as soon as the engine draws for it."""
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(engine.generate(request))
        await draws(engine)
        yield task


def assert_whole(completion, *, version=0):
    """Four columns of one length, and log-probs that can be."""
    n = len(completion.ids)
    assert completion.ids.shape == completion.logp.shape == completion.versions.shape == (n,)
    dtypes = [completion.ids.dtype, completion.logp.dtype, completion.versions.dtype]
    assert dtypes == [np.int32, np.float32, np.int32]
    assert np.isfinite(completion.logp).all()
    assert (completion.logp <= 0).all()
    assert (completion.versions == version).all()


@pytest.mark.parametrize("temperature", [1.0, 0.5, 0.0])
async def test_length_ends_a_completion_of_whole_columns(serve, temperature):
    async with serve() as engine:
        completion = await engine.generate(request_of(n=9, temperature=temperature))
    assert (completion.finish, len(completion.ids)) == ("length", 9)
    assert_whole(completion)


CUTS = {"top_p": {"top_p": 0.9}, "top_k": {"top_k": 20}, "min_p": {"min_p": 0.1}, "none": {}}


@pytest.mark.parametrize("cut", CUTS)
async def test_kept_sets_come_beside_the_tokens_unless_all_are_kept(serve, cut):
    sampling = Sampling(max_tokens=9, temperature=0.6, **CUTS[cut])
    async with serve() as engine:
        completion = await engine.generate(Request("0", np.array(PROMPT, np.int32), sampling, seed=5))
    assert_whole(completion)
    assert bool(completion.extras) is (cut != "none")
    kept = Kept.of_extras(completion.extras, 9)
    assert not kept.lacks(completion.ids).any()
    assert all((np.diff(span) > 0).all() for span in np.split(kept.ids, kept.offsets[1:-1]))
    assert kept.lengths.max() <= (20 if cut == "top_k" else 264)


async def test_aborted_completion_has_a_kept_set_for_every_token(serve):
    sampling = Sampling(max_tokens=1000, top_k=5)
    async with serve() as engine:
        async with running(engine, Request("a", np.array(PROMPT, np.int32), sampling, seed=5)) as task:
            await engine.abort()
        completion = task.result()
    assert (Kept.of_extras(completion.extras, len(completion.ids)).lengths == 5).all()


async def test_greedy_is_the_likeliest_whatever_is_cut(serve):
    async with serve() as engine:
        one = await engine.generate(request_of(temperature=0))
        sampling = Sampling(max_tokens=12, temperature=0, top_p=0.5, top_k=3, min_p=0.2)
        two = await engine.generate(Request("0", np.array(PROMPT, np.int32), sampling, seed=5))
    assert (two.ids.tolist(), two.logp.tobytes(), two.extras) == (one.ids.tolist(), one.logp.tobytes(), {})


async def test_stop_text_ends_a_completion_with_the_token_that_completes_it(serve):
    decode = ByteRenderer().decode
    async with serve() as engine:
        free = await engine.generate(request_of(n=LONG))
        text = next(c for c in decode(free.ids.tolist()[4:]) if c != "\ufffd")
        sampling = Sampling(max_tokens=LONG, stop=("never said", text))
        cut = await engine.generate(Request("0", np.array(PROMPT, np.int32), sampling, seed=5))
    assert (cut.finish, cut.ids.tolist()) == ("stop", free.ids[: len(cut.ids)].tolist())
    assert text in decode(cut.ids.tolist())
    assert text not in decode(cut.ids.tolist()[:-1])
    assert_whole(cut)


async def test_ignored_eos_leaves_the_stop_ids_of_the_request(serve):
    async with serve() as engine:
        free = await engine.generate(request_of())
        stop = int(free.ids[5])
        sampling = Sampling(max_tokens=12, ignore_eos=True, stop_token_ids=(stop,))
        cut = await engine.generate(Request("0", np.array(PROMPT, np.int32), sampling, seed=5))
    assert (cut.finish, int(cut.ids[-1])) == ("stop", stop)


async def test_stop_id_ends_a_completion_and_is_its_last_token(serve):
    async with serve() as engine:
        free = await engine.generate(request_of())
        stop = int(free.ids[5])
        cut = await engine.generate(request_of(stop=[stop]))
    first = free.ids.tolist().index(stop)
    assert (cut.finish, cut.ids.tolist()) == ("stop", free.ids[: first + 1].tolist())
    assert_whole(cut)


async def test_abort_ends_the_named_request_and_keeps_its_tokens(serve):
    async with serve() as engine:
        whole = await engine.generate(request_of(n=LONG))
        async with running(engine, request_of("a", n=LONG)) as task:
            spared = asyncio.ensure_future(engine.generate(request_of("b", n=LONG)))
            await engine.abort({"a"})
            aborted = await task
        assert (await spared).ids.tolist() == whole.ids.tolist()
    assert aborted.finish == "abort"
    assert aborted.ids.tolist() == whole.ids[: len(aborted.ids)].tolist()
    assert_whole(aborted)


async def test_abort_of_all_ends_running_and_waiting_requests(serve):
    async with serve() as engine:
        tasks = [asyncio.ensure_future(engine.generate(request_of(str(i), n=1000))) for i in range(20)]
        await draws(engine)
        await engine.abort()
        assert {(await task).finish for task in tasks} == {"abort"}
        await draws(engine, whether=False)


async def test_abort_of_nothing_is_no_error(serve):
    async with serve() as engine:
        await engine.abort()
        await engine.abort({"unknown"})
        assert len((await engine.generate(request_of())).ids) == 12


async def test_equal_seeds_draw_equal_tokens_in_any_company(serve):
    async with serve() as engine:
        alone = await engine.generate(request_of(seed=99))
        crowd = await asyncio.gather(
            *(engine.generate(request_of(str(i), ids=PROMPT[: 3 + i], seed=i)) for i in range(5)),
            engine.generate(request_of("same", seed=99)),
            engine.generate(request_of("other", seed=98)),
        )
    assert crowd[-2].ids.tolist() == alone.ids.tolist() != crowd[-1].ids.tolist()
    np.testing.assert_allclose(crowd[-2].logp, alone.logp, atol=1e-5)


async def test_noise_is_of_the_position_so_a_request_can_be_continued(serve):
    async with serve() as engine:
        whole = await engine.generate(request_of(n=12))
        rest = await engine.generate(request_of(ids=[*PROMPT, *whole.ids[:7].tolist()], n=5))
    assert rest.ids.tolist() == whole.ids[7:].tolist()


async def test_greedy_needs_no_noise(serve):
    async with serve() as engine:
        one = await engine.generate(request_of(temperature=0, seed=1))
        two = await engine.generate(request_of(temperature=0, seed=2))
    assert one.ids.tolist() == two.ids.tolist()


async def test_new_weights_between_tokens_are_stamped_where_they_draw(serve, other_weights):
    async with serve() as engine:
        before = await engine.generate(request_of(n=LONG))
        async with running(engine, request_of(n=LONG)) as task:
            await engine.load(other_weights(), 1)
        mixed = task.result()
        num_old = int((mixed.versions == 0).sum())
        ids = [*PROMPT, *mixed.ids[:num_old].tolist()]
        after = await engine.generate(request_of(ids=ids, n=LONG - num_old))
    assert 0 < num_old < LONG
    assert mixed.versions.tolist() == [0] * num_old + [1] * (LONG - num_old)
    assert mixed.ids[:num_old].tolist() == before.ids[:num_old].tolist()
    assert mixed.ids[num_old:].tolist() == after.ids.tolist()
    assert_whole(after, version=1)


async def test_nothing_is_drawn_between_pause_and_resume(serve):
    async with serve() as engine:
        whole = await engine.generate(request_of(n=LONG))
        async with running(engine, request_of("early", n=LONG)) as early:
            await engine.pause()
            late = asyncio.ensure_future(engine.generate(request_of("late", n=LONG)))
            await asyncio.sleep(0.05)
            assert not early.done()
            assert not late.done()
            await engine.resume()
        assert early.result().ids.tolist() == whole.ids.tolist() == (await late).ids.tolist()


async def test_paused_engine_takes_weights(serve, other_weights):
    async with serve() as engine:
        await engine.pause()
        await engine.load(other_weights(), 4)
        await engine.resume()
        assert_whole(await engine.generate(request_of()), version=4)
        assert (await engine.health())["version"] == 4


async def test_request_that_never_fits_is_refused_and_the_others_are_served(serve):
    async with serve() as engine:
        with pytest.raises(TooLong, match=r"1000000 to draw .* engine\.max_tokens"):
            await engine.generate(request_of(n=1_000_000))
        with pytest.raises(TooLong):
            await engine.generate(request_of(ids=[1] * 100_000))
        assert len((await engine.generate(request_of())).ids) == 12


async def test_cancelled_request_is_forgotten_and_its_id_is_free(serve):
    async with serve() as engine:
        whole = await engine.generate(request_of())
        task = asyncio.ensure_future(engine.generate(request_of(n=1000)))
        await draws(engine)
        task.cancel()
        await asyncio.wait({task})
        assert (await engine.generate(request_of())).ids.tolist() == whole.ids.tolist()
        await draws(engine, whether=False)


async def test_released_memory_comes_back_with_restore(serve):
    async with serve() as engine:
        one = await engine.generate(request_of())
        await engine.release()
        assert (await engine.health())["cache_tokens"] == 0
        await engine.restore()
        assert (await engine.generate(request_of())).ids.tolist() == one.ids.tolist()


async def test_release_while_something_runs_is_refused(serve):
    async with serve() as engine, running(engine, request_of(n=LONG)):
        with pytest.raises(EngineFailed, match="release"):
            await engine.release()


async def test_health_tells_version_and_load(serve):
    async with serve() as engine:
        assert set(await engine.health()) >= {"version", "running", "waiting", "cache_tokens"}


async def test_close_aborts_what_runs(serve):
    async with serve() as engine:
        async with running(engine, request_of(n=1000)) as task:
            await engine.close()
        assert task.result().finish == "abort"
        await engine.close()
