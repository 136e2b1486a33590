"""The contracts of environments, generate functions and sources of prompts, tried out without a model."""

import asyncio
import random
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from strop.config.tree import Env, Prompts, Reward
from strop.doctor.episodes import gold, play_once
from strop.engines.base import Completion, Request
from strop.envs.open import open_env
from strop.envs.single_turn import SingleTurn
from strop.errors import DataError
from strop.finding import Finding, Level
from strop.plugins import check_call, resolve
from strop.prompts.checks import refuse_unstorable
from strop.prompts.open import open_prompts
from strop.render.bytes import END_OF_TURN, ByteRenderer
from strop.rewards.open import open_rewards
from strop.rollout.episode import Parts
from strop.rollout.group import Player, new_group
from strop.sample import Prompt, Sample, Sampling

_REPLIES = ("", "<calc>6*7</calc>", "<calc>", "\ufffd\x00", "x" * 10_000)
_TURNS, _TIMEOUT_S = 10, 60.0
_BUDGET = 16
_TASKS = 20


def env_findings(spec: str, options: Mapping[str, Any], label: Any) -> Iterator[Finding]:
    """Episodes end, show what can be rendered, and share nothing with the next. Raises PluginError."""
    make_env = open_env(Env(type=spec, options=dict(options)))
    prompt = Prompt(id="doctor", messages="What is 6 * 7?", label=label)
    for text in (gold(prompt), *_REPLIES):
        said = repr(text) if len(text) < 20 else f"{text[0]!r} × {len(text):,}"

        def play(text: str = text) -> Any:
            return asyncio.run(play_once(make_env, prompt, text, max_turns=_TURNS, timeout_s=_TIMEOUT_S))

        first = play()
        if first.error is not None:
            yield Finding(Level.FAIL, "episode", f"reply {said}: {first.error}")
            continue
        if not first.is_done:
            text = f"reply {said}: no end after {_TURNS} of the same; env.max_turns will end it as truncated"
            yield Finding(Level.WARN, "episode", text)
        else:
            yield Finding(Level.OK, "episode", f"reply {said}: {first.said}")
        if play() != first:
            text = f"reply {said}: another episode the second time; draw from the prompt alone"
            yield Finding(Level.WARN, "twice", text)
        yield from _unrenderable(first.shown, said)


def _unrenderable(shown: tuple[tuple[Any, ...], ...], said: str) -> Iterator[Finding]:
    for messages in shown:
        try:
            ByteRenderer().follow_up([], messages, last_id=END_OF_TURN)
        except DataError as refused:
            yield Finding(Level.FAIL, "messages", f"reply {said}: {refused}")


class _Noise:
    """Replies with four letters that are a function of the request's seed, then stops."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    async def generate(self, request: Request) -> Completion:
        self.requests.append(request)
        letters = np.random.default_rng(request.seed).integers(97, 123, 4)
        ids = np.array([*letters, END_OF_TURN], np.int32)[: request.sampling.max_tokens]
        zeros = np.zeros(len(ids), np.int32)
        return Completion(ids, np.full(len(ids), -1, np.float32), zeros, "stop")


def generate_findings(spec: str, label: Any) -> Iterator[Finding]:
    """Samples that can be trained, of the ids that the engine saw, the same twice. Raises PluginError."""
    generate = resolve(spec, key="rollout.generate", names={}, group="strop.generate")
    check_call(generate, ("prompt", "ctx"), key=f"rollout.generate = {spec!r}", awaited=True)
    engine = _Noise()
    samples = asyncio.run(_group_of(generate, label, engine))
    failed = [sample for sample in samples if sample.error]
    if failed:
        yield Finding(Level.FAIL, "samples", str(failed[0].error))
        return
    yield Finding(Level.OK, "samples", f"{len(samples)} of 4 trajectories, each can be trained")
    trained = sum(sample.effective_response_length for sample in samples)
    if trained == 0:
        yield Finding(
            Level.FAIL, "mask", "no token is trained; draw through ctx.complete and append what it drew"
        )
    unseen = [r for r in engine.requests if not any(_opens(sample, r) for sample in samples)]
    if unseen:
        text = (
            f"{len(unseen)} of {len(engine.requests)} requests continue ids that are on no sample: only what "
        )
        yield Finding(Level.WARN, "exact tokens", f"{text}was drawn behind a sample's own ids can be trained")
    else:
        yield Finding(Level.OK, "exact tokens", "what the engine continued stays on the samples")
    if len({request.id for request in engine.requests}) != len(engine.requests):
        yield Finding(Level.FAIL, "calls", "two calls of one sample have one number: ctx.complete(…, call=1)")
    again = asyncio.run(_group_of(generate, label, _Noise()))
    if [sample.tokens for sample in again] != [sample.tokens for sample in samples]:
        yield Finding(
            Level.WARN, "twice", "other tokens the second time: a resumed run will not repeat itself"
        )


def _opens(sample: Sample, request: Request) -> bool:
    return bool(np.array_equal(sample.sequence.ids[: len(request.ids)], request.ids))


async def _group_of(generate: Any, label: Any, engine: Any) -> list[Sample]:
    """Four trajectories, whatever their reward."""
    rewards = open_rewards(Reward(fn="format", options={"pattern": ".*"}))
    parts = Parts(engine, ByteRenderer(), SingleTurn, Env(), generate_timeout_s=_TIMEOUT_S)
    group = new_group(0, Prompt(id="doctor", messages="What is 6 * 7?", label=label), first_index=0, size=4)
    player = Player(parts, rewards, generate, seed=0)
    await player.finish(group, Sampling(max_tokens=_BUDGET), purpose="sample", step=0)
    return group.samples


def prompts_findings(spec: str, options: Mapping[str, Any]) -> Iterator[Finding]:
    """Tasks that are of `rng` alone, differ, and can be stored. Raises PluginError."""
    section = Prompts(source=spec, options=dict(options))
    state = random.getstate()
    try:
        first, again = open_prompts(section).source.next(_TASKS), open_prompts(section).source.next(_TASKS)
        refuse_unstorable(first, where=spec)
    except DataError as wrong:
        yield Finding(Level.FAIL, "tasks", str(wrong))
        return
    distinct, labelled = len({repr(p.messages) for p in first}), sum(p.label is not None for p in first)
    text = f"{_TASKS} made, {distinct} distinct, {labelled} with a label; the first: {first[0].messages!r}"
    yield Finding(Level.OK if distinct > 1 else Level.WARN, "tasks", text[:200])
    if first != again:
        yield Finding(Level.FAIL, "twice", "other tasks the second time; draw from `rng` only")
    if random.getstate() != state:
        yield Finding(Level.FAIL, "random", "the global random state was used; draw from `rng` only")
