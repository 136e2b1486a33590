"""The page that compares recipes: a small plot for each, and a table, of runs on one task.

python docs/figures/recipes.py OUT.svg OUT.md RUN ...
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from strop.config.presets import PRESETS
from strop.reference.markdown import table
from strop.store.config_changes import differing_keys, flat
from strop.store.reader import RunReader

ROOT = Path(__file__).parents[2]
GOAL = 0.8
COLUMNS = 4
OF_A_RUN = ("name", "store.dir")
PAGE = """# Recipes compared

Every recipe from rewards on the first-run task: the same start, the same prompts, one run each.

A two-layer model with random weights learns to name the digit in a short text
([`find_digit`]({task})): {batch} prompts a step, {group} answers a prompt, seed {seed}.
The line is the mean reward of the answers before groups are dropped, the points are held-out prompts with
their 95 % interval; in grey, all the others.

![Reward by step, a plot for each recipe]({picture})

{table}

*steps to {goal}*: after how many steps an answer was worth {goal} on average, while training. *tokens drawn*:
one an answer, dropped groups and greedy answers included. *other keys*: what the run file sets otherwise than
that of {first}, beside `[algo]` and what the recipe stands for.

It is one task, made to be learnt in a minute, and one run each: a few steps more or less are chance. Answers
have one token and a step one update: there GRPO, GSPO and CISPO have the same gradient, Dr. GRPO and RLOO the
same but for a factor, which Adam divides away, and that their curves agree is as it should be. {machine}.

`strop compare A B` shows two of these runs side by side.

<!-- Written by docs/figures/recipes.py from the run directories. -->
"""


@dataclass(frozen=True)
class Run:
    """What is shown of one run."""

    recipe: str
    values: dict[str, Any]
    """Of its configuration."""
    rewards: list[tuple[int, float]]
    """(completed steps, mean reward); none where nothing but a teacher counts."""
    evals: list[Mapping[str, Any]]
    num_tokens: int
    wall_s: float
    machine: str

    @classmethod
    def read(cls, path: Path) -> "Run":
        """A run that has ended. SystemExit if it has not."""
        reader = RunReader(path)
        config, summary, records = reader.config(), reader.summary(), reader.metrics()
        if summary is None or summary["status"] != "finished":
            sys.exit(f"{path}: has not finished; a comparison needs whole runs")
        values, machine = config["values"], config["machine"]
        is_rewarded = values["reward"]["fn"] != "none"
        return cls(
            recipe=values["algo"]["type"],
            values=values,
            rewards=[(r["step"] + 1, r["rollout/reward_before_filter"]) for r in records if is_rewarded],
            evals=reader.evals(),
            num_tokens=sum(r["rollout/tokens"] for r in records),
            wall_s=summary["wall_s"],
            machine=f"strop {reader.about()['strop']}, {machine['cores']} cores, {machine['processor']}",
        )

    @property
    def steps_to_goal(self) -> int | None:
        """None where no reward was counted, or it never came there."""
        return next((step for step, reward in self.rewards if reward >= GOAL), None)

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
    figure.supxlabel("steps", fontsize=9)
    figure.supylabel("mean reward", fontsize=9)
    figure.savefig(out, metadata={"Date": None})
    plt.close(figure)


def _plot(axes: Axes, run: Run, runs: Sequence[Run]) -> None:
    steps = sorted({step for each in runs for step, _ in each.rewards})
    at_step = [[dict(each.rewards)[step] for each in runs if step in dict(each.rewards)] for step in steps]
    axes.fill_between(
        steps, [min(all_) for all_ in at_step], [max(all_) for all_ in at_step], color="#e3e3e3"
    )
    axes.axhline(GOAL, color="#999999", linewidth=0.8, linestyle=":")
    axes.plot([step for step, _ in run.rewards], [reward for _, reward in run.rewards], color="#2f6f9f")
    axes.errorbar(
        [line["step"] for line in run.evals],
        [line["mean"] for line in run.evals],
        yerr=[
            [line["mean"] - line["low"] for line in run.evals],
            [line["high"] - line["mean"] for line in run.evals],
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
        before, after = run.evals[0], run.evals[-1]
        yield [
            f"[{run.recipe}]({run.recipe}.md)",
            f"{before['mean']:.2f}",
            f"{after['mean']:.2f} ({after['low']:.2f} to {after['high']:.2f})",
            "–" if run.steps_to_goal is None else str(run.steps_to_goal),
            f"{run.num_tokens:,}",
            f"{run.wall_s:.0f}",
            ", ".join(run.others_than(runs[0])) or "–",
        ]


def page(runs: Sequence[Run], *, picture: Path, out: Path) -> str:
    """The whole page, with links as from `out`."""
    first = flat(runs[0].values)
    header = (
        "recipe",
        "held-out before",
        "after",
        f"steps to {GOAL}",
        "tokens drawn",
        "seconds in all",
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
