"""`MixtureSource`: several sources as one, each with its share of the prompts.

Which part comes next is no matter of chance. A part is due when its share of the draws so far, this one
included, is more than it had; of the parts that are due, the one whose next prompt would be late soonest is
taken (earliest deadline first: Liu and Layland 1973, for jobs of one slot). So after every single draw each
part has had its exact share to within one prompt, and the order is a function of weights and counts alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from strop.errors import DataError
from strop.prompts.base import PromptSource
from strop.sample import Prompt

SOURCE_NAME = "source_name"
"""Metadata that names the part of a prompt; slime's name."""


@dataclass(frozen=True, slots=True)
class MixturePart:
    """One source of a mixture."""

    name: str
    weight: float
    source: PromptSource
    reward: str | None = None
    """Of its prompts that name none themselves."""

    def named(self, prompt: Prompt) -> Prompt:
        """A prompt of this part as one of the mixture. Raises DataError if it names another source."""
        own = prompt.metadata.get(SOURCE_NAME, self.name)
        if own != self.name:
            raise DataError(
                f"{prompt.id}: metadata.{SOURCE_NAME} = {own!r}, but in a mixture it is the name of the "
                f"part, {self.name!r}; rename one"
            )
        return replace(
            prompt,
            id=f"{self.name}/{prompt.id}",
            metadata={**prompt.metadata, SOURCE_NAME: self.name},
            reward=prompt.reward or self.reward,
        )


class MixtureSource:
    """Draws from `parts` by weight; each goes through epochs of its own, whatever the others do."""

    def __init__(self, parts: Sequence[MixturePart]) -> None:
        self.parts = tuple(parts)
        # As the weights were written: 0.1 is a tenth here, and the order the same on any machine.
        weights = [Fraction(str(part.weight)) for part in self.parts]
        self._shares = [weight / sum(weights) for weight in weights]
        self._drawn = [0] * len(self.parts)

    def next(self, n: int) -> list[Prompt]:
        """The next `n` prompts."""
        order = [self._take_turn() for _ in range(n)]
        queues = [iter(part.source.next(order.count(place))) for place, part in enumerate(self.parts)]
        return [self.parts[place].named(next(queues[place])) for place in order]

    def state(self) -> dict[str, Any]:
        """Prompts drawn from each part, the parts' own states, and names and weights to know them by."""
        return {
            "drawn": list(self._drawn),
            "parts": [part.source.state() for part in self.parts],
            "fingerprint": self._fingerprint(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go to a position. Raises DataError if it belongs to other parts, weights or data."""
        if state["fingerprint"] != self._fingerprint():
            raise DataError(
                f"the saved position belongs to another mixture than {self._fingerprint()}; resume with the "
                "parts, names and weights that the run began with"
            )
        for part, position in zip(self.parts, state["parts"], strict=True):
            try:
                part.source.restore(position)
            except DataError as caught:
                raise DataError(f"prompts.mixture, part {part.name!r}: {caught}") from caught
        self._drawn = list(state["drawn"])

    def __len__(self) -> int:
        """0: the parts have epochs, the whole has none."""
        return 0

    def _take_turn(self) -> int:
        """The place of the part that the next prompt comes from, counted as drawn."""
        draw = sum(self._drawn) + 1
        due = [place for place, share in enumerate(self._shares) if self._drawn[place] < share * draw]
        chosen = min(due, key=lambda place: (self._drawn[place] + 1) / self._shares[place])
        self._drawn[chosen] += 1
        return chosen

    def _fingerprint(self) -> str:
        return ", ".join(f"{part.name} × {part.weight:g}" for part in self.parts)
