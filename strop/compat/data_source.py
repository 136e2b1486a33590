"""`slime.data` and `slime.rollout.data_source`: sources of groups that users subclass, name, or filter."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import asdict
from pathlib import Path
from typing import Any

from strop.compat.load import Form, form_of, load
from strop.compat.sample import Sample
from strop.prompts.base import PromptSource
from strop.prompts.open import drop_long, open_prompts
from strop.render.open import open_renderer
from strop.sample import Prompt

Group = list[Sample]

SOURCE_FILTER = Form(("args", "rollout_id", "buffer", "num_samples"))
"""The form in slime's source: the buffer holds groups, and the function takes out what it returns."""
PAGE_FILTER = Form(("args", "buffer", "num_samples"))
"""The form on slime's page: the buffer holds samples, one for each group."""


class DataSource(ABC):
    """What `--data-source-path` names: a class made with `(args)`. slime's `save` and `load` are never
    called: the run directory holds the position."""

    @abstractmethod
    def get_samples(self, num_samples: int) -> list[Group]:
        """So many groups, each of `args.n_samples_per_prompt` samples; or one sample for each."""

    def add_samples(self, samples: list[Group]) -> None:
        """Take groups back; a source that keeps them says so."""
        raise RuntimeError(f"{type(self).__name__} takes no samples back, but got {len(samples)} groups")


class RolloutDataSource(DataSource):
    """The prompts of `prompts.files`, in strop's order, as groups of blank samples.

    Made as `(args)` or as `(dataset, args)` with a list of samples of one's own. A sample's `prompt` is what
    the row has; strop renders it, by `prompts.chat_template`, when the group is played.
    """

    def __init__(self, *given: Any) -> None:
        *dataset, self.args = given
        self.dataset: list[Sample] | None = list(dataset[0]) if dataset else None
        self.sample_group_index = 0
        self.sample_index = 0
        self.metadata: dict[str, Any] = {}
        self._prompts = _files(self.args) if self.dataset is None else None

    def get_samples(self, num_samples: int) -> list[Group]:
        return [self._group(first) for first in self._next(num_samples)]

    def add_samples(self, samples: list[Group]) -> None:
        """Keeps none: this source is read-only, and a run is on-policy."""

    def _next(self, n: int) -> list[Sample]:
        if self._prompts is not None:
            return [sample_of(prompt) for prompt in self._prompts.next(n)]
        assert self.dataset
        begun = self.sample_group_index
        return [self.dataset[place % len(self.dataset)] for place in range(begun, begun + n)]

    def _group(self, first: Sample) -> Group:
        group = []
        for _ in range(self.args.n_samples_per_prompt):
            sample = deepcopy(first)
            sample.group_index, sample.index = self.sample_group_index, self.sample_index
            self.sample_index += 1
            group.append(sample)
        self.sample_group_index += 1
        return group

    def state(self) -> dict[str, Any]:
        """JSON for `restore`."""
        return {
            "prompts": None if self._prompts is None else self._prompts.state(),
            "groups": self.sample_group_index,
            "samples": self.sample_index,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from there. Raises DataError if it belongs to other data."""
        if self._prompts is not None:
            self._prompts.restore(state["prompts"])
        self.sample_group_index, self.sample_index = state["groups"], state["samples"]

    def __len__(self) -> int:
        return len(self.dataset) if self.dataset is not None else len(self._prompts or ())


class RolloutDataSourceWithBuffer(RolloutDataSource):
    """The same with a buffer of groups that were added; these come first, by `--buffer-filter-path`.

    A group that was played already is played anew: at staleness 0 no older token is trained.
    """

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.buffer: list[Group] = []
        spec = self.args.buffer_filter_path
        self.buffer_filter = open_buffer_filter(spec) if spec else _pop_first

    def get_samples(self, num_samples: int) -> list[Group]:
        taken = self._taken(num_samples)
        return taken + super().get_samples(num_samples - len(taken))

    def add_samples(self, samples: list[Group]) -> None:
        size = self.args.n_samples_per_prompt
        for group in samples:
            if not isinstance(group, list) or len(group) != size:
                raise ValueError(f"add_samples takes groups of {size} samples, got {group!r:.60}")
        self.buffer += samples

    def get_buffer_length(self) -> int:
        return len(self.buffer)

    def _taken(self, n: int) -> list[Group]:
        if not self.buffer or n == 0:
            return []
        taken = self.buffer_filter(self.args, self.buffer, n)
        if len(taken) > n:
            raise ValueError(f"the buffer filter returned {len(taken)} groups, {n} were asked for")
        chosen = {id(group) for group in taken}
        self.buffer = [group for group in self.buffer if id(group) not in chosen]
        return [self._group(blank(group[0])) for group in taken]

    def state(self) -> dict[str, Any]:
        buffer = [[_saved(sample) for sample in group] for group in self.buffer]
        return {**super().state(), "buffer": buffer}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.buffer = [[_restored(saved) for saved in group] for group in state["buffer"]]


BufferFilter = Callable[[Any, list[Group], int], list[Group]]


def open_buffer_filter(spec: str) -> BufferFilter:
    """A filter of either form. Raises PluginError."""
    key = "prompts.options.buffer_filter"
    fn = load(spec, key=key)
    if form_of(fn, (SOURCE_FILTER, PAGE_FILTER), key=f"{key} = {spec!r}") is SOURCE_FILTER:
        return lambda args, buffer, n: list(fn(args, None, buffer, n))
    return lambda args, buffer, n: _groups_of(fn(args, [group[0] for group in buffer], n), buffer)


def _groups_of(chosen: Sequence[Sample], buffer: list[Group]) -> list[Group]:
    by_first = {id(group[0]): group for group in buffer}
    return [by_first[id(sample)] for sample in chosen]


def _pop_first(args: Any, buffer: list[Group], n: int) -> list[Group]:
    del args
    return buffer[:n]


def sample_of(prompt: Prompt) -> Sample:
    """A blank sample of a prompt."""
    messages = prompt.messages if isinstance(prompt.messages, str) else list(prompt.messages)
    return Sample(
        prompt=deepcopy(messages), label=prompt.label, metadata=deepcopy(prompt.metadata), task=prompt
    )


def blank(sample: Sample) -> Sample:
    """The sample as it was before it was played."""
    if sample.task is not None:
        return sample_of(sample.task)
    return Sample(prompt=deepcopy(sample.prompt), label=sample.label, metadata=deepcopy(sample.metadata))


def _files(args: Any) -> PromptSource:
    """Rows as they are: whether messages can be shown is found when they are rendered."""
    own = args.strop_config.prompts
    opened = open_prompts(own.model_copy(update={"source": None, "options": {}, "chat_template": True}))
    if own.max_tokens is not None:
        renderer = open_renderer(
            Path(args.hf_checkpoint),
            chat_template=own.chat_template,
            template_kwargs=own.chat_template_kwargs,
        )
        opened = drop_long(opened, renderer, max_tokens=own.max_tokens)
    return opened.source


def _saved(sample: Sample) -> dict[str, Any]:
    return {**sample.to_dict(), "task": None if sample.task is None else asdict(sample.task)}


def _restored(saved: dict[str, Any]) -> Sample:
    task = saved["task"]
    sample = Sample.from_dict({name: value for name, value in saved.items() if name != "task"})
    if task is not None:
        messages = task["messages"]
        sequences = {
            "messages": messages if isinstance(messages, str) else tuple(messages),
            "tools": tuple(task["tools"]),
            "media": tuple(task["media"]),
        }
        sample.task = Prompt(**{**task, **sequences})
    return sample
