"""What a run's reward makes of responses that nobody should be paid for, and whether it says so twice."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass

from strop.doctor.episodes import gold
from strop.errors import DataError, Recorded
from strop.finding import Finding, Level
from strop.preflight import Prepared
from strop.rehearsal import rehearsal
from strop.render.base import Renderer
from strop.rewards.select import Rewards
from strop.rollout.group import new_group
from strop.sample import Group, Prompt, Sample, Status, Tokens

_FREE = 0.5
"""Share of the label's own reward above which a made-up response is paid too well; of a negative one, all."""


@dataclass(frozen=True, slots=True)
class Try:
    """A response that no model wrote, and what it is worth on average; None: it could not be scored."""

    name: str
    mean: float | None
    error: str | None = None


def scoring_findings(prepared: Prepared, groups: Sequence[Group]) -> Iterator[Finding]:
    """Of the groups that were played: each is scored again, and its prompt with made-up responses."""
    changed, tried = asyncio.run(_hosted(prepared, groups))
    scored = sum(sample.reward is not None for group in groups for sample in group.samples)
    if changed:
        text = f"{changed} of {scored} samples were worth something else when scored again: "
        yield Finding(Level.WARN, "twice", f"{text}a resumed run will not repeat itself")
    elif scored:
        yield Finding(Level.OK, "twice", f"{scored} samples scored again are worth the same")
    yield from try_findings(tried, has_labels=all(group.prompt.label is not None for group in groups))


async def _hosted(prepared: Prepared, groups: Sequence[Group]) -> tuple[int, list[Try]]:
    """Models are loaded only where one answers within the run."""
    if not prepared.rewards.guests:
        return await _both(prepared, groups)
    async with rehearsal(prepared):
        return await _both(prepared, groups)


async def _both(prepared: Prepared, groups: Sequence[Group]) -> tuple[int, list[Try]]:
    changed = 0
    try:
        for group in groups:
            changed += await _changed(prepared.rewards, group)
        prompts = [group.prompt for group in groups]
        made_up = {
            name: [
                _sample(prompt, text, prepared.renderer, index=index)
                for prompt, text in zip(prompts, texts, strict=True)
            ]
            for index, (name, texts) in enumerate(_made_up(prompts))
        }
        tries = _tries_together if prepared.rewards.is_group else _tries
        tried = await tries(prepared.rewards, prompts, made_up)
    finally:
        await prepared.rewards.close()
        await prepared.slime.close()
    return changed, tried


def try_findings(tried: Sequence[Try], *, has_labels: bool) -> Iterator[Finding]:
    """What the made-up responses say of a reward; the last of them is the label itself."""
    *hacks, label = tried
    full = label.mean if has_labels and label.mean else None
    for hack in hacks:
        yield _of_hack(hack, full)
    if has_labels and label.error is None:
        if label.mean == 0:
            text = "the label itself is worth 0: the reward reads responses of another form"
            yield Finding(Level.WARN, "the label", f"{text}; see that the prompt asks for it")
        else:
            yield Finding(Level.OK, "the label", f"as the response is worth {label.mean:.3g}")


def _of_hack(hack: Try, full: float | None) -> Finding:
    if hack.mean is None:
        return Finding(Level.FAIL, hack.name, f"cannot be scored: {hack.error}")
    text = f"is worth {hack.mean:.3g} on average"
    if full is not None and hack.mean > min(_FREE * full, full):
        return Finding(
            Level.WARN, hack.name, f"{text}, the label itself {full:.3g}: a model will find that out"
        )
    return Finding(Level.OK, hack.name, text)


def _made_up(prompts: Sequence[Prompt]) -> Iterator[tuple[str, list[str]]]:
    """Names and responses; the label itself comes last."""
    yield "empty response", [""] * len(prompts)
    yield "response '0'", ["0"] * len(prompts)
    yield "prompt repeated", [_words(prompt) for prompt in prompts]
    yield "the label", [gold(prompt) for prompt in prompts]


def _words(prompt: Prompt) -> str:
    if isinstance(prompt.messages, str):
        return prompt.messages
    return "\n".join(str(message.get("content", "")) for message in prompt.messages)


def _sample(prompt: Prompt, text: str, renderer: Renderer, *, index: int) -> Sample:
    (sample,) = new_group(0, prompt, first_index=index, size=1).samples
    ids, drawn = renderer.prompt(prompt), _drawn(prompt, text, renderer)
    zeros = [0] * len(drawn)
    sample.sequence = Tokens.context(ids) + Tokens.drawn(drawn, [-1.0] * len(drawn), zeros)
    sample.prompt_length, sample.response, sample.status = len(ids), text, Status.COMPLETED
    return sample


def _drawn(prompt: Prompt, text: str, renderer: Renderer) -> list[int]:
    """Ids of a response: reward models read these. Where the template shows no reply, the end of one."""
    try:
        said = renderer.said(prompt, text, turns="last")
    except DataError:
        return [next(iter(renderer.stop_ids), 0)]
    return [id for id, is_said in zip(said.ids, said.mask, strict=True) if is_said] or [0]


async def _tries(
    rewards: Rewards, prompts: Sequence[Prompt], made_up: Mapping[str, Sequence[Sample]]
) -> list[Try]:
    return [await _try(rewards, name, prompts, samples) for name, samples in made_up.items()]


async def _try(rewards: Rewards, name: str, prompts: Sequence[Prompt], samples: Sequence[Sample]) -> Try:
    values: list[float] = []
    for prompt, sample in zip(prompts, samples, strict=True):
        try:
            values.append((await rewards.score(sample, prompt.reward)).value)
        except Recorded as failed:
            return Try(name, None, str(failed))
    return Try(name, sum(values) / len(values))


async def _tries_together(
    rewards: Rewards, prompts: Sequence[Prompt], made_up: Mapping[str, Sequence[Sample]]
) -> list[Try]:
    """All that is made up for a prompt is one group: rewards that compare cannot score one alone."""
    try:
        scored = [
            await rewards.score_group(group, prompt.reward)
            for prompt, group in zip(prompts, map(list, zip(*made_up.values(), strict=True)), strict=True)
        ]
    except Recorded as failed:
        return [Try(name, None, str(failed)) for name in made_up]
    of_name = zip(made_up, zip(*scored, strict=True), strict=True)
    return [Try(name, sum(each.value for each in scores) / len(scores)) for name, scores in of_name]


async def _changed(rewards: Rewards, group: Group) -> int:
    """Samples whose reward is another the second time."""
    if any(sample.reward is None for sample in group.samples):
        return 0
    before, samples = [sample.reward for sample in group.samples], deepcopy(group.samples)
    for sample in samples:
        sample.reward, sample.scores = None, {}
    try:
        if rewards.is_group:
            after = [scores.value for scores in await rewards.score_group(samples, group.prompt.reward)]
        else:
            after = [(await rewards.score(sample, group.prompt.reward)).value for sample in samples]
    except Recorded:
        return len(samples)
    return sum(one != two for one, two in zip(before, after, strict=True))
