"""TensorBoard and Weights & Biases get a run's numbers; what they break, they break alone."""

import json

import pytest

from strop.config.load import load_config
from strop.config.tree import Telemetry, Wandb
from strop.errors import ConfigError, MissingPackage
from strop.store.durable import writing
from strop.store.run_dir import RunDirectory
from strop.telemetry.base import Silent
from strop.telemetry.charts import Charts
from strop.telemetry.open import check_sinks, open_sinks
from strop.telemetry.scalars import eval_scalars, step_scalars

EVALUATION = {
    "dataset": "numbers",
    "step": 0,
    "when": "start",
    "mean": 0.25,
    "stderr": None,
    "interval": "wilson",
}


def step(number, reward):
    return {"step": number, "version": number, "reward/mean": reward, "train/loss": None, "rollout/tokens": 7}


def config(*sinks, **flags):
    given = [word for name, value in flags.items() for word in (f"--telemetry.wandb.{name}", value)]
    argv = ["--model", "tiny", "--prompts.files", "a.jsonl", "--loop.steps", "4", "--name", "numbers"]
    return load_config([], [*argv, "--telemetry.sinks", *sinks, *given]).config


@pytest.fixture
def run(tmp_path):
    with RunDirectory.create(tmp_path / "run", "numbers", config={}) as run:
        yield run


def refuse(name, why):
    raise AssertionError(f"{name}: {why}")


def opened(run, *sinks):
    return open_sinks(config(*sinks), run.path, refuse)


def test_numbers_of_a_record_are_those_that_can_be_drawn():
    assert step_scalars(step(3, 0.5)) == {"reward/mean": 0.5, "rollout/tokens": 7.0}
    assert step_scalars({"step": 0, "x/nan": float("nan"), "x/flag": True}) == {}
    assert eval_scalars(EVALUATION) == {"eval/numbers/mean": 0.25}


def read_back(directory):
    """Tag → (step, value) of every event, as TensorBoard shows them."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(directory)).Reload()
    return {tag: [(e.step, e.value) for e in found.Scalars(tag)] for tag in found.Tags()["scalars"]}


def test_tensorboard_shows_steps_and_evaluations(run):
    sink = opened(run, "tensorboard")
    sink.begin("numbers", 4)
    sink.evaluated(EVALUATION)
    sink.step(step(0, 0.5))
    sink.step(step(1, 0.75))
    sink.end()
    assert read_back(run.path / "tensorboard") == {
        "eval/numbers/mean": [(0, 0.25)],
        "reward/mean": [(0, 0.5), (1, 0.75)],
        "rollout/tokens": [(0, 7.0), (1, 7.0)],
    }


def test_what_a_killed_process_wrote_after_its_checkpoint_is_shown_once(run):
    killed = opened(run, "tensorboard")
    killed.begin("numbers", 4)
    for number in range(4):  # the checkpoint is after two
        if number == 2:
            run.evals.append({**EVALUATION, "step": 2, "mean": 0.5})
            killed.evaluated({**EVALUATION, "step": 2, "mean": 0.5})
        killed.step(step(number, 0.125 * number))
    again = opened(run, "tensorboard")
    again.begin("numbers", 4, 2)
    again.step(step(2, 8.0))
    again.step(step(3, 9.0))
    again.end()
    killed.end()
    shown = read_back(run.path / "tensorboard")
    assert shown["reward/mean"] == [(0, 0.0), (1, 0.125), (2, 8.0), (3, 9.0)]
    assert shown["eval/numbers/mean"] == [(2, 0.5)]


class Told(Silent):
    """Keeps the notes."""

    def __init__(self):
        self.notes = []

    def note(self, text):
        self.notes.append(text)


class Breaks:
    """A chart that fails on its second number."""

    def __init__(self, error):
        self.error, self.values, self.closed = error, [], 0

    def write(self, step, values):
        self.values.append(values)
        if len(self.values) == 2:
            raise self.error

    def close(self, *, ok):
        self.closed += 1
        raise self.error


class Keeps:
    def __init__(self):
        self.steps, self.ends = [], []

    def write(self, step, values):
        self.steps.append(step)

    def close(self, *, ok):
        self.ends.append(ok)


def test_a_chart_that_breaks_is_said_once_and_left_out():
    person, bad, good, failed = Told(), Breaks(ValueError("no space\nleft")), Keeps(), []
    sink = Charts(person, {"bad": lambda _: bad, "good": lambda _: good}, lambda *why: failed.append(why))
    sink.begin("numbers", 4)
    for number in range(4):
        sink.step(step(number, 0.5))
    sink.end(ok=False)
    sink.end()
    assert person.notes == ["telemetry.sinks: bad: ValueError: no space; the run goes on without bad"]
    assert failed == [("bad", "bad: ValueError: no space")]
    assert (len(bad.values), bad.closed) == (2, 1)
    assert (good.steps, good.ends) == ([0, 1, 2, 3], [False])


def test_a_chart_that_cannot_be_opened_is_left_out(tmp_path):
    def on_a_full_disk(first_step):
        with writing(tmp_path / "events"):
            raise OSError(28, "No space left on device")

    person = Told()
    sink = Charts(person, {"tensorboard": on_a_full_disk}, lambda *_: None)
    sink.begin("numbers", 4)
    sink.step(step(0, 0.5))
    sink.end()
    assert len(person.notes) == 1
    assert "events: cannot be written: No space left on device; the run goes on" in person.notes[0]


@pytest.mark.parametrize("name", ["tensorboard", "wandb"])
def test_a_missing_package_is_named_with_its_install_command(name):
    section = Telemetry(sinks=["console", name])
    check_sinks(section)
    with pytest.raises(MissingPackage) as error:
        check_sinks(section, find=lambda _: None)
    assert str(error.value) == (
        f'telemetry.sinks has "{name}", which is not installed: pip install "strop[{name}]"'
    )


def test_settings_of_wandb_without_it_are_refused():
    with pytest.raises(ConfigError, match=r"telemetry.wandb.project = .* has no effect with telemetry.sinks"):
        config("tensorboard", project="mine")


@pytest.mark.slow
def test_wandb_online_without_a_key_is_refused_instead_of_asked_for(tmp_path, monkeypatch):
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    section = Telemetry(sinks=["wandb"], wandb=Wandb(mode="online"))
    with pytest.raises(ConfigError, match="needs an API key: run `wandb login`,"):
        check_sinks(section)
    monkeypatch.setenv("WANDB_API_KEY", "a" * 40)
    check_sinks(section)


@pytest.mark.slow
def test_wandb_keeps_a_run_offline_and_goes_on_with_it(run, tmp_path):
    from strop.telemetry.wandb import arguments

    wanted = config("wandb", project="digits", group="small")
    for first in (0, 2):
        sink = open_sinks(wanted, run.path, refuse)
        sink.begin("numbers", 4, first)
        sink.evaluated(EVALUATION)
        sink.step(step(first, 0.5))
        sink.end()
    told = arguments(run.path, wanted)
    assert (told["project"], told["group"], told["mode"]) == ("digits", "small", "offline")
    assert json.loads(json.dumps(told["config"]))["loop"]["steps"] == 4
    kept = list((run.path / "wandb").glob(f"offline-run-*-{told['id']}/run-{told['id']}.wandb"))
    assert len(kept) >= 1
    assert all(b"reward/mean" in file.read_bytes() for file in kept)
    with RunDirectory.create(tmp_path / "namesake", "numbers", config={}) as other:
        assert arguments(other.path, wanted)["id"] != told["id"]
