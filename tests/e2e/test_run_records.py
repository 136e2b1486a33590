"""What a whole run writes is what the catalogue says, at the steps at which it is due."""

from pathlib import Path

from strop.store.reader import RunReader
from strop.telemetry.catalogue import declared


def test_a_run_writes_declared_numbers_only(whole: Path) -> None:
    run = RunReader(whole)
    steps = {name for record in run.metrics() for name in record}
    evals = {
        f"eval/{record['dataset']}/{name}"
        for record in run.evals()
        for name, value in record.items()
        if not isinstance(value, str)
    }
    unknown = {name for name in steps | evals if declared(name) is None}
    assert {name.rpartition("/")[2] for name in unknown} <= {"step", "version"}


def test_every_evaluation_that_is_due_is_there_once_the_last_step_included(whole: Path) -> None:
    results = RunReader(whole).evals()
    for dataset in ("greedy", "drawn"):
        own = [(record["step"], record["when"]) for record in results if record["dataset"] == dataset]
        assert own == [(0, "start"), (2, "step 2"), (4, "step 4"), (5, "end")]
