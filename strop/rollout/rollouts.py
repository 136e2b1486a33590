"""What fills the buffer: a step's groups, in rounds, until enough of them are kept.

A round is waited for as a whole before dropped groups are replaced, its surplus and the slowest reward
included. So the batches that the engine sees are a function of the step's requests alone, whatever rewards
and environments take, and a resumed run draws the same tokens. A slow reward has a deadline of its own,
`reward.timeout_s`.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from strop.buffer.buffer import Buffer
from strop.config.tree import Rollout
from strop.errors import NothingToLearn
from strop.prompts.base import PromptSource
from strop.rollout.group import GREEDY, TRAINING, Player, greedy_twin, new_group
from strop.rollout.keep import Drop, Keep, judge
from strop.rollout.report import Report
from strop.rollout.sampling import greedy_sampling, run_sampling
from strop.sample import Group, Prompt
from strop.store.ledger import Entry, Event, Ledger
from strop.telemetry.groups import cells_of


class Rollouts:
    """A source of groups: plays the prompts of a `PromptSource` against the engine."""

    def __init__(
        self, player: Player, source: PromptSource, section: Rollout, *, keep: Keep | None, ledger: Ledger
    ) -> None:
        self._player, self._source, self._section = player, source, section
        self._keep, self._ledger = keep, ledger
        self._next_group = 0
        self._next_index = 0
        self.reports: dict[int, Report] = {}
        """By step; the loop takes them out as it closes steps."""
        self.on_finished: Callable[[int, int, int], None] = lambda _step, _done, _of: None
        """Called after each finished group with its step, the groups done in this round, and of how many."""

    async def fill(self, buffer: Buffer, steps: range) -> None:
        """Fill the buffer for these steps, as it has room; then end."""
        for step in steps:
            await buffer.admit(self._section.batch_size)
            await buffer.put(await self._groups_of(step))

    async def _groups_of(self, step: int) -> list[Group]:
        report = self.reports[step] = Report()
        began, kept, spare = time.perf_counter(), list[Group](), list[tuple[Group, str]]()
        every, wanted = list[Group](), self._section.batch_size
        while len(kept) < wanted and report.rounds < self._section.max_tries:
            surplus = self._section.over_sample if report.rounds == 0 else 0
            for group in await self._round(step, wanted - len(kept) + surplus, report):
                every.append(group)
                drop = judge(group, self._keep)
                if drop is None and len(kept) == wanted:
                    drop = Drop("surplus")
                if drop is None:
                    kept.append(group)
                elif drop.may_fill:
                    spare.append((group, drop.reason))
                else:
                    self._drop(step, group, drop.reason, report)
        filling, rest = spare[: wanted - len(kept)], spare[wanted - len(kept) :]
        for group, reason in rest:
            self._drop(step, group, reason, report)
        kept += [group for group, _ in filling]
        if len(kept) < wanted:
            raise NothingToLearn(_why_nothing(step, report, kept=len(kept), wanted=wanted))
        kept.sort(key=lambda group: group.id)
        await self._player.hooks.close_step(kept, every)
        report.seconds = time.perf_counter() - began
        return kept

    def _drop(self, step: int, group: Group, reason: str, report: Report) -> None:
        report.dropped[reason] += 1
        self._record(step, group, Event.DROPPED, reason)

    async def _round(self, step: int, n: int, report: Report) -> list[Group]:
        groups = [self._new_group(step, report.rounds, prompt) for prompt in self._source.next(n)]
        report.rounds, report.issued = report.rounds + 1, report.issued + n
        sampling = run_sampling(self._section)
        done = 0

        async def finish(group: Group) -> None:
            nonlocal done
            await self._player.finish(group, sampling, purpose=TRAINING, step=step)
            done += 1
            self.on_finished(step, done, n)

        async with asyncio.TaskGroup() as tasks:
            for group in groups:
                tasks.create_task(finish(group))
                if self._player.plays_greedy:
                    tasks.create_task(self._play_greedy(step, group))
        drawn = (sample.sequence.sampled for g in groups for sample in (*g.samples, *g.greedy))
        report.num_tokens += sum(int(sampled.sum()) for sampled in drawn)
        report.cells |= cells_of(groups)
        return groups

    def _new_group(self, step: int, tries: int, prompt: Prompt) -> Group:
        size = self._section.samples_per_prompt
        group = new_group(self._next_group, prompt, first_index=self._next_index, size=size)
        group.tries = tries
        self._next_group, self._next_index = self._next_group + 1, self._next_index + size
        self._record(step, group, Event.ISSUED)
        if self._player.plays_greedy:
            group.greedy = greedy_twin(group, index=self._next_index).samples
            self._next_index += 1
            indices = [sample.index for sample in group.greedy]
            self._ledger.record(Entry(step, group.id, prompt.id, Event.BASELINE, "greedy", indices))
        return group

    async def _play_greedy(self, step: int, group: Group) -> None:
        twin = Group(group.id, group.prompt, group.greedy)
        await self._player.finish(twin, greedy_sampling(self._section), purpose=GREEDY, step=step)
        group.greedy = twin.samples

    def _record(self, step: int, group: Group, event: Event, reason: str = "") -> None:
        indices = [s.index for s in group.samples]
        self._ledger.record(Entry(step, group.id, group.prompt.id, event, reason, indices))

    def record_trained(self, step: int, groups: list[Group]) -> None:
        """Close the books on the groups of a step."""
        for group in groups:
            self._record(step, group, Event.TRAINED)

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


def _why_nothing(step: int, report: Report, *, kept: int, wanted: int) -> str:
    told = report.dropped.most_common(3)
    others = report.dropped.total() - sum(n for _, n in told)
    reasons = ", ".join(f"{n} × {reason}" for reason, n in told) + f", {others} × other reasons" * bool(
        others
    )
    way_out = "make the task easier or harder, raise rollout.samples_per_prompt, or change rollout.keep"
    if any(reason.startswith("failed") for reason in report.dropped):
        way_out = "mend what failed"
    return (
        f"step {step}: after rollout.max_tries = {report.rounds} rounds ({report.issued} groups) only {kept} "
        f"of {wanted} groups can be trained; dropped: {reasons}; {way_out}"
    )
