"""The picture and the table that compare recipes are made of run directories alone."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pages import ROOT

from strop.config.load import load_config

pytestmark = pytest.mark.slow  # matplotlib


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("recipes", ROOT / "docs/figures/recipes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def a_run(path: Path, recipe: str, rewards: list[float], *, status: str = "finished", **keys: Any) -> Path:
    flags = [word for key, value in keys.items() for word in (f"--{key.replace('__', '.')}", str(value))]
    loaded = load_config([ROOT / f"examples/first_run/{recipe}.toml"], flags).config.model_dump(mode="json")
    held_out = {"dataset": "digits", "stderr": 0.0, "n": 256}
    evals = [
        {**held_out, "step": step, "mean": mean, "low": mean - 0.02, "high": mean + 0.02}
        for step, mean in ((0, 0.1), (len(rewards), rewards[-1]))
    ]
    records = [
        {"step": step, "rollout/reward_before_filter": reward, "rollout/tokens": 768}
        for step, reward in enumerate(rewards)
    ]
    files = {
        "run.json": [{"format": 1, "strop": "0.1.0"}],
        "config.json": [
            {"values": loaded, "machine": {"cores": 2, "processor": "some", "instruction_set": []}}
        ],
        "summary.json": [{"status": status, "steps": len(rewards), "wall_s": 12.3, "peak_rss_gib": 0.5}],
        "metrics.jsonl": records,
        "eval/results.jsonl": evals,
    }
    (path / "eval").mkdir(parents=True)
    for name, lines in files.items():
        (path / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_two_runs_are_a_row_and_a_plot_each(script: ModuleType, tmp_path: Path) -> None:
    runs = [
        a_run(tmp_path / "b", "rloo", [0.2, 0.5], train__optim__lr=1e-3),
        a_run(tmp_path / "a", "dapo", [0.6, 0.9, 1.0]),
    ]
    script.main(tmp_path / "out.svg", tmp_path / "out.md", runs)
    rows = [
        line.split("|")[1:-1] for line in (tmp_path / "out.md").read_text().splitlines() if "](" in line[:9]
    ]
    cells = [[cell.strip() for cell in row] for row in rows]
    assert cells == [
        ["[dapo](dapo.md)", "0.10", "1.00 (0.98 to 1.02)", "3", "2,304", "12", "0.50", "–"],
        [
            "[rloo](rloo.md)",
            "0.10",
            "0.50 (0.48 to 0.52)",
            "–",
            "1,536",
            "12",
            "0.50",
            "`train.optim.lr = 0.001`",
        ],
    ]
    picture = (tmp_path / "out.svg").read_text()
    assert [name for name in ("dapo", "rloo", "grpo") if f">{name}<" in picture] == ["dapo", "rloo"]


def test_a_run_that_has_not_finished_is_not_compared(script: ModuleType, tmp_path: Path) -> None:
    run = a_run(tmp_path / "run", "grpo", [0.2], status="interrupted")
    with pytest.raises(SystemExit, match="interrupted; a comparison needs whole runs"):
        script.main(tmp_path / "out.svg", tmp_path / "out.md", [run])
