"""A data source of slime's as a `PromptSource`: groups become prompts, and positions can be gone back to."""

import hashlib
from collections.abc import Callable
from typing import Any

import msgspec

from strop.compat.data_source import RolloutDataSource, RolloutDataSourceWithBuffer
from strop.compat.sample import Sample
from strop.errors import DataError, first_line
from strop.plugins import user_code
from strop.sample import Prompt, Status

_OWN = (RolloutDataSource, RolloutDataSourceWithBuffer)


class SlimeSource:
    """What `--data-source-path` names.

    slime's own two say where they are. Any other class is made anew and asked for the same numbers of samples
    again; if it then gives others, the run cannot be resumed, and says so.
    """

    def __init__(self, make: Callable[[], Any], *, name: str, group_size: int) -> None:
        self._make, self._name, self._group_size = make, name, group_size
        self._begin()

    def _begin(self) -> None:
        with user_code(DataError, self._name):
            self.made = self._make()
        self._calls: list[list[int]] = []
        self._digest = hashlib.blake2b(digest_size=16).hexdigest()

    def next(self, n: int) -> list[Prompt]:
        """The prompts of the next `n` groups."""
        with user_code(DataError, f"{self._name}.get_samples"):
            groups = self.made.get_samples(n)
        if not isinstance(groups, list) or len(groups) != n:
            size = len(groups) if isinstance(groups, list) else type(groups).__name__
            raise DataError(f"{self._name}.get_samples({n}): expected {n} groups, got {size}")
        prompts = [self._prompt(group) for group in groups]
        self._count(n, prompts)
        return prompts

    def state(self) -> dict[str, Any]:
        """How often it was asked for how many, a digest of what came, and its own state if it has one."""
        own = self.made.state() if type(self.made) in _OWN else None
        return {"calls": [list(call) for call in self._calls], "digest": self._digest, "own": own}

    def restore(self, state: dict[str, Any]) -> None:
        """Raises DataError if the source does not repeat itself."""
        self._begin()
        if state["own"] is not None:
            self.made.restore(state["own"])
            self._calls, self._digest = [list(call) for call in state["calls"]], state["digest"]
            return
        for n, times in state["calls"]:
            for _ in range(times):
                self.next(n)
        if self._digest != state["digest"]:
            raise DataError(
                f"{self._name} gave other prompts than when the run began; to be resumed, a source must give "
                "the same prompts for the same calls of get_samples"
            )

    def __len__(self) -> int:
        """Prompts in one epoch, of slime's own sources; 0 of others: what `len` means there is theirs."""
        return len(self.made) if type(self.made) in _OWN else 0

    def _count(self, n: int, prompts: list[Prompt]) -> None:
        if self._calls and self._calls[-1][0] == n:
            self._calls[-1][1] += 1
        else:
            self._calls.append([n, 1])
        encoded = msgspec.json.encode([(p.id, p.messages) for p in prompts], enc_hook=repr)
        self._digest = hashlib.blake2b(self._digest.encode() + encoded, digest_size=16).hexdigest()

    def _prompt(self, group: object) -> Prompt:
        members = group if isinstance(group, list) else [group]
        samples = [member for member in members if isinstance(member, Sample)]
        if not samples or len(samples) != len(members):
            raise self._wrong(f"expected a group of samples, got {first_line(repr(group), 60)}")
        if isinstance(group, list) and len(group) != self._group_size:
            raise self._wrong(
                f"a group of {len(group)} samples, but rollout.samples_per_prompt = {self._group_size}"
            )
        first = samples[0]
        self._refuse(first)
        if any(sample.prompt != first.prompt for sample in samples):
            raise self._wrong("the samples of a group have different prompts")
        return self._made_of(first)

    def _refuse(self, sample: Sample) -> None:
        if sample.tokens and sample.status in (Status.PENDING, Status.ABORTED):
            raise self._wrong(f"a sample has {len(sample.tokens)} tokens; at staleness 0 none is continued")
        for name, value in (
            ("generate_function_path", sample.generate_function_path),
            ("custom_rm_path", sample.custom_rm_path),
            ("multimodal_inputs", sample.multimodal_inputs),
        ):
            if value:
                raise self._wrong(f"Sample.{name} = {value!r} is not supported yet; leave it out")
        if not sample.prompt:
            raise self._wrong("a sample has no prompt")

    def _made_of(self, sample: Sample) -> Prompt:
        messages = sample.prompt if isinstance(sample.prompt, str) else tuple(sample.prompt)
        tools = tuple(sample.metadata.get("tools") or ())
        reward = sample.metadata.get("rm_type")
        if sample.task is not None and sample.task.messages == messages:
            return sample.task
        digest = hashlib.blake2b(msgspec.json.encode((messages, sample.label), enc_hook=repr), digest_size=8)
        return Prompt(
            id=f"{self._name}-{digest.hexdigest()}",
            messages=messages,
            label=sample.label,
            metadata=sample.metadata,
            tools=tools,
            reward=reward,
        )

    def _wrong(self, text: str) -> DataError:
        return DataError(f"{self._name}.get_samples: {text}")
