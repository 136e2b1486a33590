"""What the functions of one run share: `args`, the tokenizer, the endpoint."""

from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from strop.compat.arguments import make_args
from strop.compat.convert import Absorb, to_slime
from strop.compat.endpoint import Endpoint
from strop.compat.sample import Sample as SlimeSample
from strop.compat.source import SlimeSource
from strop.compat.tokenizer import load_tokenizer
from strop.config.tree import Config
from strop.sample import Message, Prompt, Sample


@dataclass
class Runtime:
    """Made once a run; `close` it with the run."""

    config: Config
    model: Path
    serves: bool
    """A generate function is there, so that `/generate` must be."""
    source: SlimeSource | None = None
    """Of the prompts, when it is one of slime's."""
    endpoint: Endpoint | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if self.serves:
            self.endpoint = Endpoint(seed=self.config.loop.seed, encode=self.encode)

    @cached_property
    def args(self) -> Any:
        router = self.endpoint.address if self.endpoint else None
        return make_args(self.config, model=self.model, router=router)

    @cached_property
    def absorb(self) -> Absorb:
        return Absorb(self.config.reward.score_key)

    @cached_property
    def tokenizer(self) -> Any:
        return load_tokenizer(str(self.model.absolute()))

    def encode(self, text: str) -> list[int]:
        """Ids of text that is used as it stands."""
        return list(self.tokenizer.encode(text, add_special_tokens=False))

    def prompt(self, sample: Sample, ids: list[int]) -> str | list[Message]:
        """As slime would hold it: rendered text, or what the row has, when no template is asked for."""
        if not self.config.prompts.chat_template or not ids:
            return deepcopy(sample.prompt)
        text: str = self.tokenizer.decode(ids, skip_special_tokens=False)
        return text

    def shown(self, sample: Sample, task: Prompt | None = None) -> SlimeSample:
        """A finished sample in slime's form."""
        ids = sample.sequence.ids[: sample.prompt_length].tolist()
        prompt = self.prompt(sample, ids)
        return to_slime(sample, prompt=prompt, task=task, key=self.config.reward.score_key)

    @property
    def data_source(self) -> Any:
        """The user's object, for functions that are given it."""
        return None if self.source is None else self.source.made

    async def close(self) -> None:
        """More than once is harmless."""
        if self.endpoint is not None:
            await self.endpoint.close()
