"""The generate seam: a function of the user's in the place of the episode, and what it must leave."""

from collections.abc import Awaitable, Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from strop.engines.base import Completion, Engine, Request
from strop.errors import GenerateFailed
from strop.kept import IDS, OFFSETS, Kept
from strop.randomness import derive
from strop.render.base import Renderer
from strop.rollout.hooks import Occasion
from strop.sample import Prompt, Sample, Sampling, Status

PART = 1_000_000_000
"""The k-th further part of the sample with index i has index i + k · PART: unique from birth, and the same
whatever else runs."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a custom generate function works with."""

    sample: Sample
    """To fill: `sequence`, `prompt_length`, `status`, and `response` for readers; `reward`, or leave it to
    `reward.fn`."""
    sampling: Sampling
    renderer: Renderer
    seed: int
    engine: Engine
    occasion: Occasion
    """Which step it is for, and whether it is an evaluation."""
    _parts: list[Sample] = field(default_factory=list, repr=False)

    def part(self) -> Sample:
        """A further sample of the same trajectory, to fill and to return behind `sample`: for an episode
        whose context was cut, summarised or branched. Baselines and denominators are per trajectory."""
        first = self.sample
        made = Sample(
            index=first.index + PART * (len(self._parts) + 1),
            trajectory_id=first.trajectory_id,
            group_id=first.group_id,
            prompt_id=first.prompt_id,
            prompt=deepcopy(first.prompt),
            label=deepcopy(first.label),
            metadata=deepcopy(first.metadata),
            media=first.media,
            sampling=first.sampling,
        )
        self._parts.append(made)
        return made

    async def complete(self, ids: list[int], *, call: int = 0, max_tokens: int | None = None) -> Completion:
        """Let the model continue exact ids by `max_tokens` at most (the sample's whole budget, unless given).

        Number the calls of one sample with `call`: each number has noise of its own. With top-p, top-k or
        min-p the trainer needs the sets that tokens were drawn from: give the completion's `extras` to the
        sample, as in `sample.append_response_tokens(…, meta_info={…, **completion.extras})`.
        """
        budget = self.sampling.max_tokens if max_tokens is None else max_tokens
        request = Request(
            id=f"generate/{self.sample.prompt_id}/{self.sample.index}/{call}",
            ids=np.asarray(ids, np.int32),
            sampling=replace(self.sampling, max_tokens=budget),
            seed=derive(self.seed, "call", call),
        )
        return await self.engine.generate(request)

    def check(self, made: list[Sample], *, vocabulary: int) -> None:
        """ValueError or GenerateFailed unless `made`, what the function returned, can be trained."""
        own = {id(sample) for sample in (self.sample, *self._parts)}
        is_own = isinstance(made, list) and len({id(sample) for sample in made} & own) == len(made)
        if not is_own or not made or made[0] is not self.sample:
            raise ValueError("expected [ctx.sample], with further samples of ctx.part() behind it, each once")
        for sample in made:
            _check_sample(sample, self.sampling)
            _check_ids(sample.sequence.ids, vocabulary)


Generate = Callable[[Prompt, Context], Awaitable[list[Sample]]]


def _check_ids(ids: NDArray[np.int32], vocabulary: int) -> None:
    beyond = np.flatnonzero(ids >= vocabulary)
    if len(beyond):
        raise ValueError(f"token {beyond[0]} is {ids[beyond[0]]}; the model's ids end at {vocabulary - 1}")


def _check_sample(sample: Sample, sampling: Sampling) -> None:
    if sample.status is Status.FAILED:
        raise GenerateFailed(f"rollout.generate: {sample.error or 'set ctx.sample.status to failed'}")
    if sample.status is Status.PENDING:
        raise ValueError("ctx.sample.status is still pending; set it to completed or truncated")
    if not 1 <= sample.prompt_length <= len(sample.sequence):
        raise ValueError(f"prompt_length = {sample.prompt_length} of {len(sample.sequence)} tokens")
    if sample.sequence.is_given:
        raise ValueError("none of the trained tokens was sampled; build the response with Tokens.drawn")
    if sample.response_length > sampling.max_tokens:
        raise ValueError(
            f"{sample.response_length} response tokens, rollout.max_response_tokens = {sampling.max_tokens}"
        )
    check_kept_sets(sample, sampling)


def check_kept_sets(sample: Sample, sampling: Sampling) -> None:
    """Raise ValueError for a token without the set that it was drawn from, or that is not in it: the
    trainer's log-probs would be of another distribution than the recorded ones."""
    if sampling.keeps_all and OFFSETS not in sample.extras:
        return
    response = sample.response_tokens
    kept = Kept.of_extras(sample.extras, len(response))
    bare = response.mask & (kept.lengths == 0)
    if bare.any() and not sampling.keeps_all:
        raise ValueError(
            f"{int(bare.sum())} trained tokens have no kept set, which rollout.top_p, top_k and min_p make; "
            "store the completion's extras: append_response_tokens(…, meta_info=completion.extras)"
        )
    lacks = response.sampled & kept.lacks(response.ids)
    if lacks.any():
        raise ValueError(f"response token {int(lacks.argmax())} is not in its kept set ({IDS})")
