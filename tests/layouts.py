"""An update laid out over micro-batches, data ranks and context ranks, and what each rank adds to it.

A data rank holds samples; its context ranks hold parts of their tokens, or none.
Ranks may have nothing at all.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from random_steps import Step

from strop.algo.marked import Marked
from strop.algo.pairs import Pairs
from strop.algo.sequence import sums_by_sample

# N tokens, S samples

Sum = Callable[[torch.Tensor], torch.Tensor]
"""The sum of a tensor over the context ranks of a data rank; each of them calls it as often as the others."""
CUTS = ("halves", "zigzag", "anyhow", "one has all")


@dataclass(frozen=True, slots=True)
class Layout:
    data: int
    context: int
    seed: int

    @property
    def size(self):
        return self.data * self.context

    def __str__(self):
        return f"{self.data} data x {self.context} context ranks, seed {self.seed}"


def sum_alone(value):
    return value


@dataclass(frozen=True, slots=True)
class OfTokens:
    """An algorithm's loss of one update."""

    step: Step

    def whole(self):
        """On one rank, as one micro-batch: name → tensor."""
        added = Added(self.step)
        rows = torch.arange(self.step.batch.num_tokens)
        added.micro_batch(rows, torch.ones(len(rows), dtype=torch.bool), is_first=True, sum=sum_alone)
        return added.values

    def of_rank(self, layout, rank, sum):
        """What `rank` adds: over all ranks of a layout it sums to `whole`."""
        data, context = divmod(rank, layout.context)
        rng = np.random.default_rng(layout.seed)
        batch, added = self.step.batch, Added(self.step)
        unit_S = batch.groups if self.step.algorithm.whole_groups else np.arange(len(batch.samples))
        place_S = rng.integers(0, 3 * layout.data, len(batch.samples))[unit_S]
        owner_N = torch.from_numpy(cut(batch, layout.context, rng))
        for place in range(3 * data, 3 * data + 3):
            rows = torch.from_numpy(np.flatnonzero(place_S[batch.sample_of_token] == place))
            added.micro_batch(rows, owner_N[rows] == context, is_first=context == 0, sum=sum)
        return added.values


@dataclass(frozen=True, slots=True)
class OfRows:
    """A loss of pairs, responses, lists or tokens, one number a row."""

    loss: Callable
    """(leaves, given) → [R]; both name → [R, ...]"""
    leaves: dict
    given: dict
    weight_R: torch.Tensor

    def whole(self):
        """As in `OfTokens`."""
        return self._of(torch.arange(len(self.weight_R)))

    def of_rank(self, layout, rank, sum):
        """As in `OfTokens`; no rank needs another."""
        rng = np.random.default_rng(layout.seed)
        place_R = torch.from_numpy(rng.integers(0, 3 * layout.size, len(self.weight_R)))
        parts = [self._of((place_R == 3 * rank + micro).nonzero()[:, 0]) for micro in range(3)]
        return {name: torch.stack([part[name] for part in parts]).sum(0) for name in parts[0]}

    def _of(self, rows):
        leaves = {name: leaf.clone().requires_grad_() for name, leaf in self.leaves.items()}
        some = {name: leaf[rows] for name, leaf in leaves.items()}
        loss_R = self.loss(some, {name: column[rows] for name, column in self.given.items()})
        assert loss_R.shape == (len(rows),)
        total = (self.weight_R[rows] * loss_R).sum()
        total.backward()
        slopes = {n: torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for n, leaf in leaves.items()}
        return {"total": total.detach(), **{f"gradient of {n}": slope for n, slope in slopes.items()}}


def cut(batch, num_contexts, rng):
    """[N] which context rank holds each token."""
    owner_N = np.zeros(batch.num_tokens, np.int64)
    for row in range(len(batch.samples)):
        at = batch.tokens_of(row)
        place = np.arange(at.stop - at.start)
        chunk = place * 2 * num_contexts // max(len(place), 1)
        owner_N[at] = {
            "halves": chunk // 2,
            "zigzag": np.minimum(chunk, 2 * num_contexts - 1 - chunk),
            "anyhow": rng.integers(0, num_contexts, len(place)),
            "one has all": np.full(len(place), rng.integers(0, num_contexts)),
        }[rng.choice(CUTS)]
    return owner_N


class Added:
    """Value, parts and gradients that one rank adds up."""

    def __init__(self, step):
        self.step = step
        self.weights_DV = step.weights_DV.requires_grad_()
        n = step.batch.num_tokens
        self.values = {
            "total": torch.zeros((), dtype=torch.float64),
            "gradient of log-probs": torch.zeros(n, dtype=torch.float64),
            "gradient of weights": torch.zeros_like(step.weights_DV),
        }

    def micro_batch(self, rows, mine, *, is_first, sum):
        """`rows` of the step, of which this rank holds those that are `mine`."""
        of_wholes = isinstance(self.step.algorithm, Pairs | Marked)
        own = self._own(rows, mine, sum)
        own.logp_N.retain_grad()
        inputs = self._gathered(rows, mine, own.logp_N, sum) if of_wholes else own
        loss = self.step.algorithm.loss(inputs)
        assert loss.total.requires_grad
        loss.total.backward()
        self._add("gradient of log-probs", own.logp_N.grad, rows[mine])
        self.values["gradient of weights"] += self.weights_DV.grad
        self.weights_DV.grad = None
        if is_first or not of_wholes:
            self._add("total", loss.total.detach())
            for name, part in loss.parts.items():
                self._add(name, part)

    def _add(self, name, value, rows=None):
        held = self.values.setdefault(name, torch.zeros((), dtype=torch.float64))
        if rows is None:
            held += value
        else:
            held[rows] += value

    def _own(self, rows, mine, sum):
        sample_N = torch.from_numpy(self.step.batch.sample_of_token)[rows]
        samples, place_N = torch.unique(sample_N, return_inverse=True)
        sums = sums_over(sum, place_N[mine], len(samples))
        return self.step.inputs(self.weights_DV, rows[mine], sums=sums, sample_N=sample_N[mine])

    def _gathered(self, rows, mine, own_N, sum):
        """A loss that looks at whole samples is given them whole: each rank's log-probs are sent to the
        others, and its gradients are of its own."""
        sample_N = torch.from_numpy(self.step.batch.sample_of_token)[rows]
        known_N = torch.zeros(len(rows), dtype=torch.float64)
        known_N[mine] = own_N.detach()
        logp_N = sum(known_N).index_copy(0, mine.nonzero()[:, 0], own_N)
        sums = sums_by_sample(sample_N)
        return self.step.inputs(self.weights_DV, rows, sums=sums, sample_N=sample_N, logp_N=logp_N)


def sums_over(sum, place_N, num_samples):
    """`LossInputs.sums` of a rank that holds parts of samples: those of all its context ranks, by sample."""

    def sums(value_N):
        sum_S = torch.zeros(num_samples, dtype=torch.float64).index_add_(
            0, place_N, value_N.detach().double()
        )
        return sum(sum_S)[place_N].to(value_N.dtype)

    return sums


def differences(case, added, *, tolerance=1e-6):
    """Where the sum over ranks is not what one rank has, in words; relative where values exceed 1."""
    expected = case.whole()
    told = [f"{name}: of no rank alone" for name in sorted(added.keys() - expected.keys())]
    for name, value in expected.items():
        off = float((added.get(name, 0) - value).abs().max()) if value.numel() else 0.0
        scale = max(1.0, float(value.abs().max())) if value.numel() else 1.0
        if not off <= tolerance * scale:
            told.append(f"{name} is off by {off:.3g} at a size of {scale:.3g}")
    return told


class Threads:
    """Context ranks in one process: a sum waits for all of them."""

    def __init__(self, size):
        self._barrier, self._given = threading.Barrier(size, timeout=60), [None] * size

    def sum_of(self, rank):
        def sum(value):
            self._given[rank] = value
            self._barrier.wait()
            total = torch.stack(self._given).sum(0)
            self._barrier.wait()
            return total

        return sum


def by_threads(case, layout):
    """The sum over the ranks of a layout, without processes."""
    total = {}
    for data in range(layout.data):
        ranks = range(data * layout.context, (data + 1) * layout.context)
        threads = Threads(layout.context)
        sums = [threads.sum_of(context) for context in range(layout.context)]
        with ThreadPoolExecutor(layout.context) as pool:
            parts = pool.map(case.of_rank, [layout] * layout.context, ranks, sums)
            for part in parts:
                total = {n: total.get(n, 0) + part.get(n, 0) for n in {**total, **part}}
    return total
