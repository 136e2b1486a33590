"""What there is to say of rows before a run: how many, how long, how much of them is trained."""

from collections import Counter
from dataclasses import dataclass

from strop.offline.rows import RowReader
from strop.prompts.base import PromptSource
from strop.prompts.open import look_ahead


@dataclass(frozen=True, slots=True)
class RowFacts:
    """Of all rows that are trained; an evaluation has none."""

    rows: int
    shortest: int
    longest: int
    """Tokens of prompt and response."""
    tokens: int
    """Of all responses with their prompts."""
    trained: int
    """Of these, those that the loss is of."""
    roles: dict[str, int]
    """Responses by role."""

    @property
    def said(self) -> str:
        """In one line."""
        if not self.rows:
            return "none: nothing is trained"
        roles = ", ".join(f"{count} {role}" for role, count in self.roles.items())
        share = f"{self.trained:,} of {self.tokens:,} tokens are trained"
        return f"{self.rows} rows ({roles}) of {self.shortest}–{self.longest} tokens; {share}"


def row_facts(source: PromptSource, reader: RowReader) -> RowFacts:
    """Every row is read; the position of the source stays."""
    rows = [reader.responses(row) for row in look_ahead(source, 0)]
    responses = [response for row in rows for response in row]
    lengths = [len(response.sequence) for response in responses]
    return RowFacts(
        rows=len(rows),
        shortest=min(lengths, default=0),
        longest=max(lengths, default=0),
        tokens=sum(lengths),
        trained=sum(int(response.sequence.mask.sum()) for response in responses),
        roles=dict(Counter(response.role.value for response in responses)),
    )
