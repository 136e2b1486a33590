"""`Offline`: a source of groups that are given by rows. Nothing is drawn and nothing is rewarded."""

from collections.abc import Sequence
from typing import Any

from strop.buffer.buffer import Buffer
from strop.offline.rows import Response, RowReader
from strop.prompts.base import PromptSource
from strop.rollout.report import Report
from strop.sample import Group, Prompt, Role, Sample, Status
from strop.store.ledger import Entry, Event, Ledger


class Offline:
    """A `GroupSource`: each row of `source` is a group, in the order in which `source` gives them."""

    def __init__(self, source: PromptSource, reader: RowReader, *, batch_size: int, ledger: Ledger) -> None:
        self._source, self._reader = source, reader
        self._batch_size, self._ledger = batch_size, ledger
        self._next_group = 0
        self._next_index = 0
        self.reports: dict[int, Report] = {}
        """By step; the loop takes them out as it closes steps."""

    async def fill(self, buffer: Buffer, steps: range) -> None:
        """Fill the buffer for these steps, as it has room; then end."""
        for step in steps:
            await buffer.admit(self._batch_size)
            rows = self._source.next(self._batch_size)
            groups = groups_of(rows, self._reader, first_group=self._next_group, first_index=self._next_index)
            self._next_group += len(groups)
            self._next_index += sum(len(group.samples) for group in groups)
            for group in groups:
                self._record(step, group, Event.ISSUED)
            self.reports[step] = Report(issued=len(groups), is_given=True)
            await buffer.put(groups)

    def record_trained(self, step: int, groups: list[Group]) -> None:
        """Close the books on the groups of a step."""
        for group in groups:
            self._record(step, group, Event.TRAINED)

    def _record(self, step: int, group: Group, event: Event) -> None:
        indices = [sample.index for sample in group.samples]
        self._ledger.record(Entry(step, group.id, group.prompt.id, event, "", indices))

    def state(self) -> dict[str, Any]:
        """JSON; true only at a cut, when nothing is in flight."""
        return {
            "prompts": self._source.state(),
            "next_group": self._next_group,
            "next_index": self._next_index,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a cut."""
        self._source.restore(state["prompts"])
        self._next_group, self._next_index = state["next_group"], state["next_index"]


def groups_of(
    rows: Sequence[Prompt], reader: RowReader, *, first_group: int = 0, first_index: int = 0
) -> list[Group]:
    """The groups of rows that are trained, or evaluated, together. Marked responses get a second sample each:
    the prompt with the response of the row before, which tells how far policy and reference are apart."""
    groups, index = list[Group](), first_index
    read = [reader.responses(row) for row in rows]
    for place, row in enumerate(rows):
        responses = list(read[place])
        if responses[0].role in (Role.DESIRABLE, Role.UNDESIRABLE):
            responses.append(reader.mismatched(responses[0], read[place - 1][0]))
        group = Group(first_group + place, row, [])
        for response in responses:
            group.samples.append(_sample(group, response, index))
            index += 1
        groups.append(group)
    return groups


def _sample(group: Group, response: Response, index: int) -> Sample:
    prompt = group.prompt
    is_extra = response.role is Role.MISMATCHED
    return Sample(
        index=index,
        group_id=group.id,
        trajectory_id=group.samples[0].index if is_extra else index,
        remove_sample=is_extra,
        prompt_id=prompt.id,
        role=response.role.value,
        prompt=prompt.messages if isinstance(prompt.messages, str) else list(prompt.messages),
        sequence=response.sequence,
        prompt_length=response.prompt_length,
        response=response.text,
        status=Status.TRUNCATED if response.is_cut else Status.COMPLETED,
        metadata=dict(prompt.metadata),
    )
