"""`Hint`: what teachers are shown before the prompts of a batch, and the policy is not."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from strop.algo.batch import Batch, behind
from strop.config.tree import Config, Rollout
from strop.errors import DataError, RunError
from strop.nn.catalog import max_positions
from strop.render.base import Renderer
from strop.render.hint import hinted
from strop.sample import Group, Prompt


@dataclass(frozen=True, slots=True)
class Hint:
    """Of `algo.teacher.hint_key`."""

    key: str
    """Of the metadata that holds the text."""
    renderer: Renderer
    has_roles: bool
    """Whether prompts are shown with a chat template."""

    @classmethod
    def of(cls, config: Config, renderer: Renderer) -> "Hint | None":
        """None: teachers see what the policy sees."""
        key = config.algo.teacher.hint_key
        return None if key is None else cls(key, renderer, config.prompts.chat_template)

    def ids(self, prompt: Prompt) -> list[int]:
        """Of the prompt with its hint. Raises DataError where there is none."""
        return self.renderer.prompt(hinted(prompt, self.key, has_roles=self.has_roles))

    def check(self, prompts: Sequence[Prompt], teachers: Sequence[Path], rollout: Rollout) -> None:
        """Raises DataError for a prompt without a hint, or whose hint leaves too little room."""
        held = min((max_positions(path) for path in teachers), default=None)
        for prompt in prompts:
            tokens = len(self.ids(prompt))
            if held is not None and tokens + rollout.max_response_tokens > held:
                raise DataError(
                    f"{prompt.id} has {tokens} tokens with its hint (metadata.{self.key}), and with "
                    f"rollout.max_response_tokens = {rollout.max_response_tokens} more than the {held} that "
                    "the teacher takes; shorten the hint"
                )

    def shown(self, batch: Batch, groups: Sequence[Group]) -> Batch:
        """The batch as teachers see it. Raises RunError where an environment opened with words of its own,
        since a hint goes before prompts as the data have them."""
        prompts = {group.id: group.prompt for group in groups}
        plain = {id: np.array(self.renderer.prompt(prompt), np.int32) for id, prompt in prompts.items()}
        told = {id: self.ids(prompt) for id, prompt in prompts.items()}
        for sample in batch.samples:
            if not np.array_equal(sample.sequence.ids[: sample.prompt_length], plain[sample.group_id]):
                raise RunError(
                    "algo.teacher.hint_key: the environment opened with messages of its own, before which no "
                    "hint can be put"
                )
        return behind(batch, [told[sample.group_id] for sample in batch.samples])
