"""The page that compares recipes: a small plot for each, and a table, of runs on one task.

python docs/figures/recipes.py OUT.svg OUT.md RUN ...
"""

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from strop.cli.outcome import HeldOut, Outcome, outcome_of
from strop.config.presets import PRESETS
from strop.reference.markdown import table
from strop.store.config_changes import differing_keys, flat
from strop.store.reader import RunReader
from strop.telemetry.learning_curve import WINDOW

ROOT = Path(__file__).parents[2]
GOAL = 0.8
COLUMNS = 4
OF_A_RUN = ("name", "store.dir")
PAGE = """# Recipes compared

Every recipe from rewards on the first-run task: the same start, the same prompts, one run each.

A two-layer model with random weights learns to name the digit in a short text
([`find_digit`]({task})): {batch} prompts a step, {group} answers a prompt, seed {seed}.
The line is the mean reward of the answers of the last {window} steps, before groups are dropped; the points
are held-out prompts with their 95 % interval; in grey, all the others.

![Reward by step, a plot for each recipe]({picture})

{table}

*steps to {goal}*: when that mean was first {goal}. *tokens drawn*: one an answer, dropped groups and greedy
answers included. *other keys*: what the run file sets otherwise than that of {first}, beside `[algo]` and
what the recipe stands for.

It is one task, made to be learnt in a minute, and one run each: a few steps more or less are chance. Answers
have one token and a step one update: there GRPO, GSPO and CISPO have the same gradient, Dr. GRPO and RLOO the
same but for a factor, which Adam divides away, and that their curves agree is as it should be. {machine}.

`strop compare` shows the same of any runs, and two side by side.

<!-- Written by docs/figures/recipes.py from the run directories. -->
"""


@dataclass(frozen=True)
class Run:
    """What is shown of one run."""

    recipe: str
    values: dict[str, Any]
    """Of its configuration."""
    outcome: Outcome
    held_out: HeldOut
    """Of the first data set."""
    machine: str

    @classmethod
    def read(cls, path: Path) -> "Run":
        """A run that has ended. SystemExit if it has not."""
        reader = RunReader(path)
        config, outcome = reader.config(), outcome_of(reader)
        if outcome.status != "finished":
            sys.exit(f"{path}: {outcome.status}; a comparison needs whole runs")
        values, machine = config["values"], config["machine"]
        return cls(
            recipe=values["algo"]["type"],
            values=values,
            outcome=outcome,
            held_out=next(iter(outcome.held_out.values())),
            machine=f"strop {reader.about()['strop']}, {machine['cores']} cores, {machine['processor']}",
        )

    def others_than(self, first: "Run") -> list[str]:
        """Keys that differ from those of another run, which is not the recipe's doing."""
        own, values = {*OF_A_RUN, *PRESETS[self.recipe], *PRESETS[first.recipe]}, flat(self.values)
        keys = [key for key in differing_keys(first.values, self.values) if not key.startswith("algo.")]
        return [f"`{key} = {values.get(key)}`" for key in keys if key not in own]


def draw(runs: Sequence[Run], out: Path) -> None:
    """A small plot for each run, before what lies between the worst and the best of all."""
    plt.rcParams["svg.hashsalt"] = "strop"  # the same runs give the same file
    plt.rcParams["svg.fonttype"] = "none"  # text is text: a third of the size
    rows = -(-len(runs) // COLUMNS)
    figure, grid = plt.subplots(
        rows,
        COLUMNS,
        figsize=(9, 2 * rows),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for axes, run in zip(grid.flat, [*runs, *[None] * (grid.size - len(runs))], strict=True):
        axes.set_visible(run is not None)
        if run is not None:
            _plot(axes, run, runs)
    for axes in grid.flat[max(0, len(runs) - COLUMNS) : len(runs)]:
        axes.tick_params(labelbottom=True)  # also where the last row ends before it
    figure.supxlabel("steps", fontsize=9)
    figure.supylabel("mean reward", fontsize=9)
    figure.savefig(out, metadata={"Date": None})
    plt.close(figure)


def _plot(axes: Axes, run: Run, runs: Sequence[Run]) -> None:
    curves = [dict(each.outcome.curve) for each in runs]
    steps = sorted({step for curve in curves for step in curve})
    at_step = [[curve[step] for curve in curves if step in curve] for step in steps]
    axes.fill_between(
        steps, [min(all_) for all_ in at_step], [max(all_) for all_ in at_step], color="#e3e3e3"
    )
    axes.axhline(GOAL, color="#999999", linewidth=0.8, linestyle=":")
    axes.plot(*zip(*run.outcome.curve, strict=True), color="#2f6f9f")
    ends = [record for record in (run.held_out.start, run.held_out.end) if record is not None]
    axes.errorbar(
        [record["step"] for record in ends],
        [record["mean"] for record in ends],
        yerr=[
            [record["mean"] - record["low"] for record in ends],
            [record["high"] - record["mean"] for record in ends],
        ],
        fmt="o",
        markersize=4,
        color="#c2571a",
        capsize=3,
    )
    axes.set_title(run.recipe, fontsize=9)
    axes.set_ylim(0, 1.05)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)


def rows_of(runs: Sequence[Run]) -> Iterator[list[str]]:
    """Of the table."""
    for run in runs:
        before, after = run.held_out.start, run.held_out.end
        assert before is not None
        assert after is not None
        yield [
            f"[{run.recipe}]({run.recipe}.md)",
            f"{before['mean']:.2f}",
            f"{after['mean']:.2f} ({after['low']:.2f} to {after['high']:.2f})",
            *(text for _, text in run.outcome.took(GOAL)),
            ", ".join(run.others_than(runs[0])) or "–",
        ]


def page(runs: Sequence[Run], *, picture: Path, out: Path) -> str:
    """The whole page, with links as from `out`."""
    first = flat(runs[0].values)
    header = (
        "recipe",
        "held-out before",
        "after",
        *(title for title, _ in runs[0].outcome.took(GOAL)),
        "other keys",
    )
    return PAGE.format(
        task=_link(ROOT / "examples/first_run/task.py", out),
        picture=_link(picture, out),
        batch=first["rollout.batch_size"],
        group=first["rollout.samples_per_prompt"],
        seed=first["loop.seed"],
        table=table(header, rows_of(runs)),
        goal=GOAL,
        window=WINDOW,
        first=runs[0].recipe,
        machine=runs[0].machine,
    )


def _link(to: Path, page: Path) -> str:
    return Path(os.path.relpath(to, page.parent)).as_posix()


def main(picture: Path, out: Path, paths: Sequence[Path]) -> None:
    """Read, draw, write: in the order of the recipes."""
    runs = sorted((Run.read(path) for path in paths), key=lambda run: [*PRESETS].index(run.recipe))
    draw(runs, picture)
    out.write_text(page(runs, picture=picture, out=out), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), [Path(name) for name in sys.argv[3:]])
