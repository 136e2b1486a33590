"""READ THIS FIRST: the training loop. Each line is a station of the data flow; choices live in objects."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from strop.run import Run


async def train(run: "Run") -> None:
    """Post-train a policy: prompts → rollout → rewards → buffer → algorithm → trainer → weight sync."""
    async with run.groups():  # fills the buffer in the background
        for step in run.steps():  # step s trains on version s
            groups = await run.buffer.take(run.plan.groups_per_step)  # rewarded, filtered, in order
            async with run.turn("train"):  # a shared device changes hands here
                batch = await run.scored(run.packed(groups))  # the log-probs that the algorithm asked for
                run.algo.credit(batch)  # per-token advantages, the whole step in sight
                metrics = await run.trainer.step(batch)
            async with run.turn("sync"):  # both sets of weights resident
                await run.sync.push(run.trainer.weights(), step + 1)
            await run.close_step(step, groups, batch, metrics)  # record; eval and checkpoint when due
            await run.buffer.release(groups)  # only now may new work start
