"""Runs every case on real process groups: `layout_program.py SEED`, eight processes that speak by gloo.

Prints one line of JSON: how many cases ran, and what was off, by its name, layout and seed.
"""

import json
import os
import socket
import sys
import traceback

import torch
import torch.distributed as dist
from layout_cases import CASES, SCORES
from layouts import Layout, OfTokens, differences
from random_steps import random_step
from row_losses import LOSSES, random_rows, random_scores

WORLD = 8
LAYOUTS = [(data, context) for data in (1, 2, 3, 4) for context in (1, 2)]


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def rows_of(seed):
    for number, name in enumerate(LOSSES):
        yield name, random_rows(name, seed + number), None


def scores_of(seed):
    for number, name in enumerate(SCORES):
        yield name, random_scores(name, seed + number), None


def tokens_of(seed):
    for number, (name, section) in enumerate(CASES.items()):
        at = seed + number
        clean = OfTokens(random_step(section, at, poison=False))
        yield name, OfTokens(random_step(section, at, poison=True)), clean


def cases_of(seed):
    yield from tokens_of(seed)
    yield from rows_of(seed)
    yield from scores_of(seed)


def summed(added, like, group):
    """Over the ranks of a layout, in one message; what a rank lacks it has none of."""
    values = {name: added.get(name, torch.zeros_like(value)) for name, value in like.items()}
    flat = torch.cat([value.reshape(-1) for value in values.values()])
    if group is not None:
        dist.all_reduce(flat, group=group)
    sizes = [value.numel() for value in values.values()]
    parts = flat.split(sizes)
    return {name: part.reshape(like[name].shape) for name, part in zip(values, parts, strict=True)}


def groups():
    """By layout the group of all its ranks; and the pairs of context ranks."""
    of_layout = {layout: dist.new_group(range(layout[0] * layout[1])) for layout in LAYOUTS}
    return of_layout, [dist.new_group([first, first + 1]) for first in range(0, WORLD, 2)]


def run(rank, seed):
    of_layout, pairs = groups()
    told, num_cases = [], 0
    for data, context in LAYOUTS:
        if rank >= data * context:
            continue
        layout = Layout(data, context, seed + 10 * data + context)

        def sum_context(value):
            total = value.clone()
            dist.all_reduce(total, group=pairs[rank // 2])
            return total

        sum_of_rank = sum_context if context == 2 else torch.clone
        for name, case, clean in cases_of(1000 * layout.seed):
            expected = clean or case
            added = case.of_rank(layout, rank, sum_of_rank)
            found = summed(added, expected.whole(), of_layout[data, context])
            num_cases += 1
            told += [f"{name} ({layout}): {off}" for off in differences(expected, found)]
    return {"cases": num_cases, "off": told}


def main():
    seed, port = int(sys.argv[1]), free_port()
    torch.set_num_threads(1)
    for rank in range(1, WORLD):
        if os.fork() == 0:
            start(rank, seed, port)
    start(0, seed, port)


def start(rank, seed, port):
    """Never returns, so that no forked process goes on as its parent. The others end when one does."""
    code = 1
    try:
        dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=WORLD)
        found = run(rank, seed)
        if rank == 0:
            print(json.dumps(found), flush=True)  # noqa: T201 (it is a program)
        dist.barrier()
        code = 0
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
