"""`Load`: how much a step asks of engine and trainer, in rows and tokens. Pure; lengths in, numbers out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from strop.config.tree import Config
from strop.engines.local.capacity import rounded


@dataclass(frozen=True, slots=True)
class Lengths:
    """Of prompts and responses, in tokens."""

    prompts: tuple[int, ...]
    """Of every prompt of a data set, or of the first of a source without end."""
    evals: dict[str, tuple[int, ...]]
    """Of the held-out sets, by name."""
    response: float
    """Of a typical response."""
    is_measured: bool
    """Whether `response` was measured in a run; else it is the most that is allowed."""

    @property
    def prompt(self) -> float:
        """Of a typical prompt."""
        return sum(self.prompts) / len(self.prompts)


@dataclass(frozen=True, slots=True)
class Rows:
    """Sequences that the engine decodes at once."""

    rows: int
    capacity: int
    """Tokens that each row has room for, after the prompt."""
    prompts: int
    """Different prompts of these sequences."""
    prompt_capacity: int
    """Tokens that there is room for, for each prompt."""
    waves: float
    """Times that all rows are filled, until every sequence is done."""

    @property
    def tokens(self) -> int:
        """Of the caches."""
        return self.rows * self.capacity + self.prompts * self.prompt_capacity


@dataclass(frozen=True, slots=True)
class Load:
    """Of one step."""

    rollout: Rows
    evals: dict[str, Rows]
    update_tokens: int
    """Fed through the model for one update; a group's prompt counts once."""
    micro_tokens: int
    """… for the largest micro-batch."""
    num_micro: int
    """Micro-batches of an update."""
    micro_targets: int
    """Tokens of a micro-batch whose log-prob is computed."""


def load_of(config: Config, lengths: Lengths) -> Load:
    """What `config` asks for, with prompts and responses of these lengths."""
    rollout = config.rollout
    group = rollout.samples_per_prompt
    evals = {
        section.name: _rows(
            config,
            lengths.evals[section.name],
            groups=len(lengths.evals[section.name]),
            size=section.samples_per_prompt,
            response=section.max_response_tokens or rollout.max_response_tokens,
        )
        for section in config.eval.datasets
    }
    groups = rollout.batch_size + rollout.over_sample
    played = group + (config.algo.advantage == "greedy")
    fed = lengths.prompt + group * max(
        0.0, lengths.response - 1
    )  # the last token of a response predicts none
    update = fed * rollout.batch_size / config.train.updates_per_step
    alone = lengths.prompt + lengths.response
    micro = min(update, max(float(config.train.max_tokens_per_device), alone))
    return Load(
        rollout=_rows(
            config, lengths.prompts, groups=groups, size=played, response=rollout.max_response_tokens
        ),
        evals=evals,
        update_tokens=round(update),
        micro_tokens=round(micro),
        num_micro=math.ceil(update / micro),
        micro_targets=round(micro * group * lengths.response / max(fed, 1.0)),
    )


def _rows(config: Config, prompts: Sequence[int], *, groups: int, size: int, response: int) -> Rows:
    """`groups` prompts, `size` samples of each."""
    own = response - 1  # the last token is not fed
    if config.rollout.max_context_tokens is not None:
        own = min(own, config.rollout.max_context_tokens - min(prompts))
    own, prompt = rounded(own), rounded(max(prompts))
    whole, rest = divmod(config.engine.max_tokens, prompt + size * own)
    more = (rest - prompt) // own if own and rest > prompt else 0
    rows = min(groups * size, max(1, whole * size + more))
    return Rows(rows, own, -(-rows // size), prompt, waves=groups * size / rows)
