"""What must hold of the prompts of a run beside the form of their rows."""

from collections.abc import Sequence
from dataclasses import dataclass

from strop.config.tree import Config
from strop.engines.local.capacity import ROUNDING, longest_sequence
from strop.errors import DataError, RunError
from strop.render.base import Renderer
from strop.sample import Prompt
from strop.store.json_text import encode_exact


@dataclass(frozen=True, slots=True)
class Room:
    """How long a prompt may be; an environment's own messages come on top, and are met in the run."""

    config: Config
    max_positions: int
    """Of the model."""

    def check(self, prompts: Sequence[Prompt], renderer: Renderer, *, where: str) -> None:
        """Raises DataError for one that cannot be rendered, or for the longest if it leaves no room for the
        response."""
        cache, response = self.config.engine.max_tokens, self.config.rollout.max_response_tokens
        lengths = [len(renderer.prompt(prompt)) for prompt in prompts]
        longest, held = max(lengths), longest_sequence(cache, self.max_positions)
        if longest + response > held:
            raise DataError(
                f"{where}: {prompts[lengths.index(longest)].id} has {longest} tokens, and with "
                f"rollout.max_response_tokens = {response} more than the {held} that fit (engine.max_tokens "
                f"= {cache}, the model takes {self.max_positions}); {self._way_out(lengths, held, where)}"
            )

    def _way_out(self, lengths: list[int], held: int, where: str) -> str:
        response = self.config.rollout.max_response_tokens
        ways = ["shorten it", "lower rollout.max_response_tokens"]
        if where == "prompts" and self.config.prompts.files and min(lengths) + response <= held:
            ways = [f"set prompts.max_tokens = {held - response} to leave such rows out", *ways[1:]]
        needed = max(lengths) + response
        if needed <= self.max_positions:
            ways.append(f"raise engine.max_tokens to {-(-needed // ROUNDING) * ROUNDING}")
        return ", or ".join(ways)


def refuse_unlabelled(prompts: Sequence[Prompt], *, where: str, reward: str) -> None:
    """Raises DataError for the first prompt without the label that `reward` compares with."""
    for prompt in prompts:
        if prompt.label is None:
            raise DataError(
                f"{where}: {prompt.id} has no label, which reward.fn = {reward!r} compares with; add one, or "
                "name its field in prompts.label_key"
            )


def refuse_unstorable(prompts: Sequence[Prompt], *, where: str) -> None:
    """Raises DataError for what samples could not be stored with: a run must not find out after a step."""
    for prompt in prompts:
        parts = {"messages": prompt.messages, "label": prompt.label}
        parts |= {f"metadata.{name}": value for name, value in prompt.metadata.items()}
        for name, value in parts.items():
            try:
                encode_exact(value, f"{where}: {prompt.id}: {name}")
            except RunError as caught:
                raise DataError(str(caught)) from caught
