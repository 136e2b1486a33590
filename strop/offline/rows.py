"""Rows of supervised and preference data as tokens: rendered, masked, measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from strop.config.offline import Rows
from strop.errors import DataError
from strop.prompts.open import Opened, drop_refused, look_ahead, only
from strop.render.base import Renderer
from strop.render.said import Said
from strop.sample import Prompt, Role
from strop.tokens import Tokens


@dataclass(frozen=True, slots=True)
class Response:
    """A prompt and a response as tokens."""

    role: Role
    sequence: Tokens
    prompt_length: int
    text: str
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class RowReader:
    """Makes tokens of rows, by `prompts.rows`. `longest`: tokens that the model takes."""

    renderer: Renderer
    section: Rows
    longest: int
    num_responses: int | None = None
    """That every row must have; None: its shape says so."""
    margin_field: str | None = None
    """Of the metadata, which must hold a number there."""

    @property
    def limit(self) -> int:
        """Tokens of prompt and response at most."""
        return min(self.section.max_tokens or self.longest, self.longest)

    def responses(self, prompt: Prompt) -> tuple[Response, ...]:
        """Of a row that fits, or may be cut, in the order of its group: the chosen response before the
        rejected one."""
        roles = [Role(role.partition("/")[0]) for role in prompt.label]
        return tuple(self._response(role, said) for role, said in zip(roles, self.shown(prompt), strict=True))

    def shown(self, prompt: Prompt) -> list[Said]:
        """The responses of a row, uncut. Raises DataError if one cannot be shown, two are shown alike, or
        something is missing."""
        self._check(prompt)
        said = [
            self.renderer.said(prompt, reply, turns=self.section.turns).drawn
            for reply in prompt.label.values()
        ]
        if not _differ(said):
            raise DataError(
                f"{prompt.id}: two of its responses are the same tokens: nothing tells which is better; "
                "leave the row out"
            )
        return said

    def _check(self, prompt: Prompt) -> None:
        found, name = len(prompt.label), self.margin_field
        if self.num_responses is not None and found != self.num_responses:
            raise DataError(
                f"{prompt.id} has {found} responses, expected {self.num_responses} "
                "(rollout.samples_per_prompt)"
            )
        margin = 0 if name is None else prompt.metadata.get(name)
        if isinstance(margin, bool) or not isinstance(margin, int | float):
            raise DataError(
                f"{prompt.id}: metadata has no number {name!r} (algo.reward_model.margin_field), got "
                f"{margin!r}"
            )

    def mismatched(self, own: Response, other: Response) -> Response:
        """The prompt of one row with the response of another."""
        start = own.prompt_length
        ids = [*own.sequence.ids[:start].tolist(), *other.sequence.ids[other.prompt_length :].tolist()]
        mask = [*([False] * start), *other.sequence.mask[other.prompt_length :].tolist()]
        sequence = Tokens.given(ids[: self.limit], mask[: self.limit])
        return Response(Role.MISMATCHED, sequence, start, other.text)

    def _response(self, role: Role, said: Said) -> Response:
        kept = said.cut(self.limit)
        sequence, start = Tokens.given(kept.ids, kept.mask), said.prompt_length
        text = self.renderer.decode(kept.ids[start:])
        return Response(role, sequence, start, text, is_cut=len(said.ids) > self.limit)


@dataclass(slots=True)
class Checked:
    """What a look at every row found."""

    opened: Opened
    num_cut: int = 0
    """Rows that are cut to the longest that is allowed."""


@dataclass(slots=True)
class _Look:
    """At one data set after another."""

    reader: RowReader
    num_cut: int = 0
    long: list[tuple[Prompt, int]] = field(default_factory=list)

    def keeps(self, prompt: Prompt) -> bool:
        """Whether the row is trained."""
        said, limit = self.reader.shown(prompt), self.reader.limit
        size = max(len(each.ids) for each in said)
        if size <= limit:
            return True
        self.long.append((prompt, size))
        if self.reader.section.on_long != "truncate":
            return self.reader.section.on_long == "stop"
        # Else nothing that is trained is left, or nothing that tells which response is better.
        keeps = all(each.prompt_length < limit for each in said) and _differ([s.cut(limit) for s in said])
        self.num_cut += keeps
        return keeps

    def refuse_long(self, where: str) -> None:
        """Raises DataError for rows that are too long, if they are to stop the run."""
        if not self.long or self.reader.section.on_long != "stop":
            return
        prompt, size = max(self.long, key=lambda each: each[1])
        others = f" (and {len(self.long) - 1} more rows are too long)" if len(self.long) > 1 else ""
        limit = f"prompts.rows.max_tokens = {self.reader.limit}"
        if self.reader.limit == self.reader.longest:
            limit = f"the {self.reader.longest} that the model takes"
        raise DataError(
            f"{where}: {prompt.id} has {size} tokens, more than {limit}{others}; set prompts.rows.on_long = "
            '"truncate" to cut such rows at their end, or "skip" to leave them out'
        )


def check_rows(
    opened: Opened, eval_sets: Mapping[str, Sequence[Prompt]], reader: RowReader, *, skip_bad: bool
) -> Checked:
    """The rows that are trained. `skip_bad`: rows that the chat template cannot show count as malformed;
    else, and for rows that are too long, raises DataError. Of held-out rows it does in any case: figures of
    fewer could not be compared."""
    shown = drop_refused(opened, reader.shown) if skip_bad else opened
    look = _Look(reader)
    kept = only(shown, look.keeps, why=f"that has something to learn within {reader.limit} tokens")
    look.refuse_long("prompts")
    _refuse_alone(look_ahead(kept.source, 0), where="prompts")
    for name, rows in eval_sets.items():
        _check_held_out(rows, reader, where=f"eval.datasets.{name}")
    return Checked(kept, look.num_cut)


def _check_held_out(rows: Sequence[Prompt], reader: RowReader, *, where: str) -> None:
    _refuse_alone(rows, where=where)
    look = _Look(reader)
    dropped = [row for row in rows if not look.keeps(row)]
    look.refuse_long(where)
    if dropped:
        raise DataError(
            f"{where}: {dropped[0].id} is longer than the {reader.limit} tokens that are read, and held-out "
            "rows are not left out; shorten it, or leave it out of the file"
        )


def _refuse_alone(rows: Sequence[Prompt], *, where: str) -> None:
    """Raises DataError for a marked row without another, whose response its prompt is compared with."""
    if len(rows) == 1 and not {Role.DESIRABLE, Role.UNDESIRABLE}.isdisjoint(rows[0].label):
        raise DataError(
            f"{where}: {rows[0].id} is the only row, but each marked row's prompt is compared with the "
            "response of another; give at least 2"
        )


def _differ(said: Sequence[Said]) -> bool:
    """Whether no two responses to a prompt are the same tokens."""
    return len({tuple(each.ids) for each in said}) == len(said)
