"""Training on a group's prompt once against the forms that others use, forward and backward, in one run.

python benchmarks/packing.py [MODEL_DIR] [THREADS]. Three ways to compute the same gradient: shared-prefix
packing, packing without sharing, and the padded batch (by its tokens, at the rate of the unshared form).
"""

import sys
import time
from pathlib import Path

import numpy as np
import torch

from strop.algo.batch import Batch, make_batch
from strop.config.home import models_dir
from strop.nn.loading import CausalLM, load_model
from strop.nn.tiny import make_tiny
from strop.sample import Group, Prompt, Sample, Tokens
from strop.train.forward import packed_stats
from strop.train.packing import pack

GROUPS, SIZE, PROMPT, LONGEST = 2, 8, 110, 90


def batch() -> Batch:
    """Groups of random tokens with responses of 10 to LONGEST tokens."""
    rng = np.random.default_rng(0)
    groups = []
    for g in range(GROUPS):
        prompt = rng.integers(0, 256, PROMPT).tolist()
        samples = []
        for i in range(SIZE):
            sample = Sample(
                index=g * SIZE + i, group_id=g, sequence=Tokens.context(prompt), prompt_length=PROMPT
            )
            n = int(rng.integers(10, LONGEST + 1))
            sample.append_response_tokens(tokens=rng.integers(0, 256, n).tolist(), log_probs=[-1.0] * n)
            sample.reward = 0.0
            samples.append(sample)
        groups.append(Group(id=g, prompt=Prompt(id=str(g), messages=""), samples=samples))
    return make_batch(groups, num_updates=1, max_response_tokens=LONGEST, temperature=1.0)


def seconds(model: CausalLM, data: Batch, row_sets: list[list[int]]) -> float:
    """Of one forward and backward over all `row_sets`, each packed apart; the better of two."""
    best = float("inf")
    for _ in range(2):
        began = time.perf_counter()
        for rows in row_sets:
            for packed in pack(data, rows, max_tokens=100_000):
                packed_stats(model, packed, temperature=1.0, dtype=torch.float32).logp_N.sum().backward()
        best = min(best, time.perf_counter() - began)
        for _, parameter in model.named_parameters():
            parameter.grad = None
    return best


def main(path: Path, threads: int) -> None:
    """Print tokens, seconds and ratios."""
    torch.set_num_threads(threads)
    model, data = load_model(path, torch.float32), batch()
    rows = list(range(GROUPS * SIZE))
    shared_tokens = sum(len(p.ids) for p in pack(data, rows, max_tokens=100_000))
    unshared_tokens = sum(len(s.sequence) - 1 for s in data.samples)
    padded_tokens = len(rows) * max(len(s.sequence) for s in data.samples)
    shared, unshared = seconds(model, data, [rows]), seconds(model, data, [[row] for row in rows])
    padded = unshared * padded_tokens / unshared_tokens
    print(f"{path.name}, {threads} threads, {GROUPS} prompts of {PROMPT} × {SIZE} responses of 10-{LONGEST}")
    print(f"shared    {shared_tokens:6d} tokens {shared:6.1f} s  {shared_tokens / shared:5.0f} tokens/s")
    print(f"unshared  {unshared_tokens:6d} tokens {unshared:6.1f} s  {unshared / shared:.2f} times as long")
    print(
        f"padded    {padded_tokens:6d} tokens {padded:6.1f} s  {padded / shared:.2f} times as long, estimated"
    )


if __name__ == "__main__":
    smollm = models_dir() / "smollm2-135m"
    default = smollm if smollm.is_dir() else make_tiny(models_dir() / "tiny")
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else default, int(sys.argv[2]) if len(sys.argv) > 2 else 2)
