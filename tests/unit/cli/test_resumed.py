"""What a resumed run may not change, and what is said of what it did."""

import pytest

from strop.cli.resumed import machine_changes, machine_note, refuse_changes, refuse_other_prompts
from strop.config.load import load_config
from strop.config.show import to_json
from strop.errors import ConfigError, DataError
from strop.prompts.dataset import DatasetSource
from strop.sample import Prompt
from strop.store.run_dir import RunDirectory

RECORD = {"plan": {"threads": 2}, "machine": {"cores": 2, "processor": "A", "instruction_set": ["avx2"]}}


def loaded(*flags):
    return load_config([], ["--model", "tiny", "--prompts.files", "a.jsonl", *flags])


def prompts(*texts):
    return DatasetSource([Prompt(id=text, messages=text) for text in texts], shuffle=False, seed=0)


@pytest.fixture
def run(tmp_path):
    """One of eight steps, three of which are done."""
    state = {"rollouts": {"prompts": prompts("a", "b", "c").state()}}
    with RunDirectory.create(tmp_path / "run", "run", config=to_json(loaded("--loop.steps", "8"))) as run:
        run.write_checkpoint(3, fill=lambda _: None, state=state, keep=1)
    return run


def test_fewer_steps_than_are_done_are_refused(run):
    refuse_changes(run.path, loaded("--loop.steps", "3"))
    with pytest.raises(ConfigError) as error:
        refuse_changes(run.path, loaded("--loop.steps", "2"))
    assert str(error.value) == "--loop.steps: loop.steps = 2, but the run is 3 steps along; give at least 3"


def test_fewer_steps_than_are_done_are_refused_of_a_finished_run_too(run):
    run.write_summary({"status": "finished", "steps": 3})
    with pytest.raises(ConfigError, match="the run is 3 steps along"):
        refuse_changes(run.path, loaded("--loop.steps", "2"))


def test_the_prompts_of_the_run_are_taken_and_stay_where_they_are(run):
    source = prompts("a", "b", "c")
    source.next(2)
    refuse_other_prompts(run.path, source)
    assert source.next(1)[0].id == "c"


def test_other_prompts_than_those_of_the_run_are_refused(run):
    with pytest.raises(DataError) as error:
        refuse_other_prompts(run.path, prompts("a", "b", "x"))
    assert str(error.value).startswith(
        f'store.dir = "{run.path}": the saved position belongs to other prompts'
    )


def test_the_same_machine_has_nothing_to_say():
    assert machine_changes({**RECORD, "values": 1}, {**RECORD, "values": 2}) == {}


def test_another_machine_is_told_by_what_decides_the_last_bits():
    now = {"plan": {"threads": 4}, "machine": {"cores": 8, "processor": "B", "instruction_set": ["avx2"]}}
    changes = machine_changes(RECORD, now)
    assert changes == {"plan.threads": [2, 4], "machine.processor": ["A", "B"]}
    assert machine_note(changes) == (
        "resumed on another machine: plan.threads 2 → 4, machine.processor A → B; from here on, numbers may "
        "differ in their last bits"
    )
