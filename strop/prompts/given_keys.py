"""The names of the fields that hold what is trained, in rows of supervised and preference training."""

from dataclasses import dataclass

from strop.config.offline import Shape
from strop.config.tree import Prompts


@dataclass(frozen=True, slots=True)
class GivenKeys:
    """As `prompts.rows` names them."""

    shape: Shape
    messages: str
    response: str
    chosen: str
    rejected: str
    ranked: str

    @classmethod
    def of(cls, section: Prompts, shape: Shape) -> "GivenKeys":
        rows = section.rows
        responses = (rows.chosen_key, rows.rejected_key, rows.ranked_key)
        return cls(shape, rows.messages_key, rows.response_key, *responses)

    def columns(self) -> tuple[str, ...]:
        """Those that rows of this shape may have."""
        if self.shape == "pairs":
            return (self.chosen, self.rejected)
        if self.shape == "ranked":
            return (self.ranked,)
        return (self.messages, self.response) if self.shape == "texts" else (self.response,)
