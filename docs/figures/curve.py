"""The picture in the README: reward by step, and the held-out mean before and after, of one run.

python docs/figures/curve.py RUN OUT.svg
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from matplotlib.ticker import MaxNLocator

from strop.store.reader import RunReader


def main(run: Path, out: Path) -> None:
    """Draw `run` into `out`."""
    plt.rcParams["svg.hashsalt"] = "strop"  # the same run gives the same file
    reader = RunReader(run)
    records, evals = reader.metrics(), reader.evals()
    figure, axes = plt.subplots(figsize=(7.2, 3.2), layout="constrained")
    steps = [record["step"] + 0.5 for record in records]
    axes.plot(steps, [record["reward/mean"] for record in records], color="#2f6f9f", label="training reward")
    axes.errorbar(
        [line["step"] for line in evals],
        [line["mean"] for line in evals],
        yerr=[
            [line["mean"] - line["low"] for line in evals],
            [line["high"] - line["mean"] for line in evals],
        ],
        fmt="o",
        color="#c2571a",
        capsize=3,
        label=f"held-out mean, n = {evals[0]['n']}, 95 % interval",
    )
    axes.set(xlabel="step", ylabel="share right", ylim=(0, 1.02), xlim=(-0.5, len(records) + 0.5))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, loc="lower right")
    figure.savefig(out, metadata={"Date": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
