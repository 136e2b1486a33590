"""What a `rollout.generate` function may rely on, and what it must leave; run over one of each kind.

A new one is a line in `FUNCTIONS`, by path as a run names it.
"""

from pathlib import Path

import numpy as np
from cases import case
from scripted import PROMPT, Noise, finished_group, player_of

from strop.plugins import resolve
from strop.sample import Status, Tokens

PATH = str(Path(__file__))
BUDGET = 16


async def one_reply(prompt, ctx):
    """The episode of a single turn."""
    ids = ctx.renderer.prompt(prompt)
    out = await ctx.complete(ids)
    reply = Tokens.drawn(out.ids, out.logp, out.versions)
    ctx.sample.sequence, ctx.sample.prompt_length = Tokens.context(ids) + reply, len(ids)
    ctx.sample.response = ctx.renderer.decode(out.ids.tolist())
    ctx.sample.status = Status.COMPLETED if out.finish == "stop" else Status.TRUNCATED
    return [ctx.sample]


async def best_of_two(prompt, ctx):
    """Two calls, of which the one that comes first in the alphabet is kept, with a reward of its own."""
    ids = ctx.renderer.prompt(prompt)
    both = [await ctx.complete(ids, call=call, max_tokens=8) for call in range(2)]
    out = min(both, key=lambda completion: completion.ids.tolist())
    ctx.sample.sequence, ctx.sample.prompt_length = Tokens.context(ids), len(ids)
    ctx.sample.append_response_tokens(
        tokens=out.ids.tolist(),
        log_probs=out.logp.tolist(),
        text=ctx.renderer.decode(out.ids.tolist()),
        meta_info={"finish_reason": {"type": out.finish}, "weight_version": int(out.versions[0])},
    )
    ctx.sample.reward = 0.5
    return [ctx.sample]


async def two_turns(prompt, ctx):
    """A reply, a fixed question that is not trained, and a second reply."""
    ids = ctx.renderer.prompt(prompt)
    ctx.sample.sequence, ctx.sample.prompt_length = Tokens.context(ids), len(ids)
    for call in range(2):
        room = BUDGET - ctx.sample.response_length
        out = await ctx.complete(ctx.sample.tokens, call=call, max_tokens=room)
        ctx.sample.append_response_tokens(tokens=out.ids.tolist(), log_probs=out.logp.tolist())
        if call == 0:
            ctx.sample.append_response_tokens(tokens=[1, 2, 3], trainable=False)
    ctx.sample.status = Status.COMPLETED
    return [ctx.sample]


async def two_parts(prompt, ctx):
    """Two samples of one trajectory, as when a context is begun anew."""
    made = [ctx.sample, ctx.part()]
    for call, sample in enumerate(made):
        ids = ctx.renderer.prompt(prompt)
        out = await ctx.complete(ids, call=call)
        sample.sequence, sample.prompt_length = Tokens.context(ids), len(ids)
        sample.append_response_tokens(tokens=out.ids.tolist(), log_probs=out.logp.tolist())
        sample.status = Status.COMPLETED
    return made


FUNCTIONS = [f"{PATH}:{name}" for name in ("one_reply", "best_of_two", "two_turns", "two_parts")]


def functions():
    """(name, function) of each."""
    for path in FUNCTIONS:
        yield path.split(":")[1], resolve(path, key="rollout.generate", names={}, group="strop.generate")


async def group_of(generate, *, size=4, engine=None):
    player = player_of(engine or Noise(), generate=generate, reward=lambda _: 1.0)
    return await finished_group(player, size=size, max_tokens=BUDGET)


async def test_every_sample_ends_rewarded_and_without_error():
    for name, generate in functions():
        with case(name):
            for sample in await group_of(generate):
                assert (sample.error, sample.status in (Status.COMPLETED, Status.TRUNCATED)) == (None, True)
                assert np.isfinite(sample.reward)


async def test_prompt_is_not_trained_and_the_response_fits_the_budget():
    for name, generate in functions():
        with case(name):
            for sample in await group_of(generate):
                assert 1 <= sample.prompt_length < len(sample.sequence)
                assert not sample.sequence.mask[: sample.prompt_length].any()
                assert 1 <= sample.response_length <= BUDGET
                assert sample.effective_response_length >= 1


async def test_engine_sees_ids_that_stay_on_the_sample():
    for name, generate in functions():
        with case(name):
            engine = Noise()
            samples = await group_of(generate, size=1, engine=engine)
            for request in engine.requests:
                assert all(sample.tokens[: len(request.ids)] == request.ids.tolist() for sample in samples)


async def test_requests_at_one_time_have_ids_of_their_own():
    for name, generate in functions():
        with case(name):
            engine = Noise()
            await group_of(generate, engine=engine)
            assert len({request.id for request in engine.requests}) == len(engine.requests)


async def test_samples_differ_and_the_same_group_is_the_same_again():
    for name, generate in functions():
        with case(name):
            one, two = await group_of(generate), await group_of(generate)
            assert [s.tokens for s in one] == [s.tokens for s in two]
            assert len({tuple(s.tokens) for s in one}) == len({s.index for s in one}) == len(one)
            assert len({s.trajectory_id for s in one}) == 4


async def test_prompt_is_left_as_it_was():
    for name, generate in functions():
        with case(name):
            before = repr(PROMPT)
            await group_of(generate)
            assert repr(PROMPT) == before
