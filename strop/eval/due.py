"""When held-out sets are evaluated: at the start, every few steps, and always at the end."""


def occasion(done: int, *, every: int, steps: int) -> str | None:
    """`start`, `step 10` or `end` when an evaluation is due after `done` of `steps`; else None.

    It depends on the completed steps alone, so a resumed run has each evaluation of an uninterrupted one
    exactly once: what came after the checkpoint is gone and is done again.
    """
    if done == 0:
        return "start"
    if done == steps:
        return "end"
    return f"step {done}" if every and done % every == 0 else None
