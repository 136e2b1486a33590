from xml.etree import ElementTree

import pytest
from cases import case

from strop.cli.compare import USAGE, main
from strop.cli.compare_many import differing
from strop.config.presets import is_given
from strop.errors import ConfigError
from strop.store.run_dir import RunDirectory
from strop.telemetry.learning_curve import WINDOW


def run_of(path, *, rewards=(0.2, 0.4), algo="grpo", lr=1e-6, ended="finished", evals=None, **values):
    """A run directory with the numbers that a table shows, and nothing else."""
    tree = {
        "name": path.name,
        "algo": {"type": algo, "aggregation": f"of {algo}"},
        "train": {"optim": {"lr": lr}},
        "store": {"dir": str(path)},
        **values,
    }
    origins = {
        **dict.fromkeys(("name", "algo.type", "train.optim.lr", *values), "run.toml:1"),
        "algo.aggregation": f"algo.type = {algo}",
        "store.dir": "--store.dir",
    }
    with RunDirectory.create(path, "run", config={"values": tree, "origins": origins}) as run:
        for step, reward in enumerate(rewards):
            shown = {} if reward is None else {"rollout/reward_before_filter": reward, "rollout/tokens": 700}
            run.metrics.append({"step": step, **shown})
        for record in evals or ():
            run.evals.append({"dataset": "digits", **record})
        if ended:
            summary = {"status": ended, "steps": len(rewards), "wall_s": 12.3, "peak_rss_gib": 0.5}
            run.write_summary(summary)
    return path


def table(capsys, *argv):
    """Rows by their first cell, as cells by column; and the lines below."""
    assert main([str(word) for word in argv]) == 0
    head, _, *lines = capsys.readouterr().out.splitlines()
    rows = lines[: lines.index("")]
    titles = [part.strip() for part in head.split("  ") if part.strip()]
    cells = [[part.strip() for part in row.split("  ") if part.strip()] for row in rows]
    return {row[0]: dict(zip(titles, row, strict=True)) for row in cells}, lines[len(rows) + 1 :]


def test_a_row_a_run_in_the_order_given(tmp_path, capsys):
    paths = [run_of(tmp_path / name, algo=name) for name in ("rloo", "ppo", "gspo")]
    rows, remarks = table(capsys, *paths)
    assert list(rows) == ["rloo", "ppo", "gspo"]
    assert rows["ppo"] == {
        "run": "ppo",
        "algo.type": "ppo",
        "steps": "2",
        "steps to 0.8": "–",
        "tokens drawn": "1,400",
        "wall s": "12",
        "peak GiB": "0.50",
    }
    assert remarks == [
        "steps to 0.8: until the mean training reward of the last 5 steps was that or more",
        "1 other key differs: algo.aggregation",
    ]


def test_keys_with_most_values_have_columns_and_the_others_are_counted(tmp_path, capsys):
    paths = [
        run_of(tmp_path / f"r{i}", algo=f"a{i}", lr=i / 8, model=f"m{i // 2}", loop={"seed": i // 3})
        for i in range(4)
    ]
    rows, remarks = table(capsys, *paths)
    assert [*rows["r3"]][1:4] == ["algo.type", "train.optim.lr", "model"]
    assert rows["r3"]["train.optim.lr"] == "0.375"
    assert remarks[-1] == "2 other keys differ: algo.aggregation, loop.seed"


def test_what_a_file_or_a_flag_set_comes_before_what_follows_from_it():
    """As `config.presets.is_given` tells them apart."""
    cases = ["default", "batch identity", "algo.type = dapo", "run.toml:14", "--lr", "--algo.type"]
    for origin in cases:
        with case(origin):
            configs = [
                {"values": {"given": i // 3, "other": i}, "origins": {"given": "--given", "other": origin}}
                for i in range(4)
            ]
            assert differing(configs).shown == (["other", "given"] if is_given(origin) else ["given"])


def test_what_only_some_runs_have_is_a_dash_in_the_others(tmp_path, capsys):
    paths = [run_of(tmp_path / "a"), run_of(tmp_path / "b", model="tiny"), run_of(tmp_path / "c")]
    rows, _ = table(capsys, *paths)
    assert [row["model"] for row in rows.values()] == ["–", "tiny", "–"]


def test_of_a_long_value_the_end_is_shown(tmp_path, capsys):
    paths = [run_of(tmp_path / name, model=f"/home/{'x' * 80}/{name}") for name in "abc"]
    rows, _ = table(capsys, *paths)
    assert [row["model"] for row in rows.values()] == [f"…{'x' * 21}/{name}" for name in "abc"]


def test_held_out_sets_that_differ_are_counted_and_not_pressed_into_a_cell(tmp_path, capsys):
    paths = [run_of(tmp_path / f"r{n}", eval={"datasets": [{"name": "digits", "n": n}]}) for n in range(3)]
    rows, remarks = table(capsys, *paths)
    assert [*rows["r0"]][:2] == ["run", "steps"]
    assert remarks[-1] == "1 other key differs: eval.datasets"


def test_a_difference_that_a_cell_would_cut_off_has_no_column(tmp_path, capsys):
    paths = [run_of(tmp_path / name, model=f"/{name}/{'x' * 80}") for name in "abc"]
    rows, remarks = table(capsys, *paths)
    assert [*rows["a"]][:2] == ["run", "steps"]
    assert remarks[-1] == "1 other key differs: model"


def test_equal_configurations_have_no_column(tmp_path, capsys):
    rows, _ = table(capsys, *(run_of(tmp_path / name) for name in "abc"))
    assert [*rows["a"]][:2] == ["run", "steps"]


def test_held_out_means_have_their_intervals_and_say_when_they_are_not_of_the_end(tmp_path, capsys):
    start = {"step": 0, "mean": 0.0012, "low": -0.00015, "high": 0.00249}
    a = run_of(tmp_path / "a", evals=[start, {"step": 2, "mean": 1.0, "low": 0.9852, "high": 1.0}])
    b = run_of(tmp_path / "b", evals=[start, {"step": 1, "mean": 0.5, "low": None, "high": None}])
    rows, remarks = table(capsys, a, b, run_of(tmp_path / "c"))
    assert rows["a"]["digits at start"] == "0.001 (0.000 to 0.002)"
    assert rows["a"]["digits at end"] == "1.000 (0.985 to 1.000)"
    assert rows["b"]["digits at end"] == "0.500 after 1"
    assert rows["c"]["digits at start"] == rows["c"]["digits at end"] == "–"
    assert remarks[0] == "digits: held-out mean with its 95 % interval"


def test_a_run_that_has_not_finished_is_shown_as_such(tmp_path, capsys):
    paths = [run_of(tmp_path / f"r{ended}", ended=ended) for ended in ("", "interrupted", "failed")]
    rows, _ = table(capsys, *paths)
    assert [row["steps"] for row in rows.values()] == ["2, unfinished", "2, interrupted", "2, failed"]
    assert (rows["r"]["wall s"], rows["r"]["peak GiB"]) == ("–", "–")


def test_the_level_can_be_chosen(tmp_path, capsys):
    rising = run_of(tmp_path / "a", rewards=(-2.0, 0.0, -1.0))
    rows, _ = table(capsys, rising, run_of(tmp_path / "b"), run_of(tmp_path / "c"), "--reach", "-1")
    assert [row["steps to -1"] for row in rows.values()] == ["2", "1", "1"]


def test_the_help_says_how_many_steps_the_mean_is_of():
    assert f"of the last {WINDOW} steps" in USAGE


def test_runs_of_one_name_are_told_apart_by_their_paths(tmp_path, capsys):
    paths = [run_of(tmp_path / folder / "run") for folder in "abc"]
    rows, _ = table(capsys, *paths)
    assert list(rows) == [str(path) for path in paths]


def test_a_row_is_one_line_however_long(tmp_path, capsys):
    paths = [run_of(tmp_path / (letter * 120)) for letter in "abc"]
    rows, _ = table(capsys, *paths)
    assert list(rows) == [path.name for path in paths]


def test_two_runs_side_by_side_show_what_they_took(tmp_path, capsys):
    a, b = run_of(tmp_path / "a", rewards=(0.9,)), run_of(tmp_path / "b", rewards=(None,))
    assert main([str(a), str(b)]) == 0
    out = capsys.readouterr().out
    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert "steps to 0.8 1 –" in rows
    assert "tokens drawn 700 –" in rows


def test_the_plot_has_the_runs_that_have_a_reward_and_names_the_others(tmp_path, capsys):
    paths = [
        run_of(tmp_path / "a"),
        run_of(tmp_path / "b", ended=""),
        run_of(tmp_path / "rows", rewards=(None,)),
    ]
    out = tmp_path / "curves.svg"
    _, lines = table(capsys, *paths, "--plot", out)
    assert lines[-2:] == [f"plot: {out}", "not drawn, without a training reward: rows"]
    texts = [text.text for text in ElementTree.parse(out).iter() if text.tag.endswith("text")]
    assert texts[-2:] == ["a", "b, unfinished"]
    assert "training reward, mean of 5 steps" in texts


def test_a_plot_takes_the_place_of_an_older_one_and_leaves_nothing_else(tmp_path, capsys):
    a, b = run_of(tmp_path / "a"), run_of(tmp_path / "b")
    out = tmp_path / "pictures" / "curves.svg"
    out.parent.mkdir()
    out.write_text("old")
    assert main([str(a), str(b), "--plot", str(out)]) == 0
    assert [path.name for path in out.parent.iterdir()] == ["curves.svg"]
    assert out.read_text().startswith("<svg")


def test_what_is_asked_wrongly_is_refused_in_one_line(tmp_path, monkeypatch):
    cases = [
        ("a b c --exact", "--exact: says whether two runs are one, got 3 runs"),
        ("a b --exact --plot x.svg", "--exact: only says whether two runs are one; leave out --plot"),
        ("a b --reach much", "--reach: expected a reward, such as 0.8, got much"),
        ("a b --reach nan", "--reach: expected a reward, such as 0.8, got nan"),
        ("a b --reach 1 --reach 2", "--reach: given 2 times, expected once"),
        ("a b --plot x.png", "--plot: expected a file that ends in .svg, got x.png"),
        ("a b --plot d.svg", "--plot d.svg: is a folder; name a file"),
        ("a b --plot no/x.svg", "--plot no/x.svg: there is no folder no; make it, or name another"),
        (
            "rows rows --plot x.svg",
            "--plot x.svg: none of these runs has a training reward, so there is nothing to draw",
        ),
        ("a b nowhere", "nowhere does not exist; name the directory of a run, e.g. runs/latest"),
    ]
    monkeypatch.chdir(tmp_path)
    run_of(tmp_path / "a"), run_of(tmp_path / "b"), run_of(tmp_path / "rows", rewards=(None,))
    (tmp_path / "d.svg").mkdir()
    for words, message in cases:
        with case(words):
            with pytest.raises(ConfigError) as error:
                main(words.split())
            assert str(error.value) == message
            assert not (tmp_path / "x.svg").exists()
