"""AdamW over float32 master weights: parameter groups, the learning rate's course, exact save and load."""

import math
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from strop.config.tree import Optim
from strop.nn.saving import safetensors_at

FILE = "optimizer.safetensors"


def learning_rate(section: Optim, *, update: int, total: int) -> float:
    """Of update `update` (from 0) out of `total`: linear warm-up from 0, then constant, or down to 0."""
    if update < section.warmup:
        return section.lr * (update + 1) / section.warmup
    progress = (update - section.warmup) / max(1, total - section.warmup)
    match section.schedule:
        case "constant":
            return section.lr
        case "linear":
            return section.lr * max(0.0, 1 - progress)
        case "cosine":
            return section.lr * 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))


class Optimizer:
    """AdamW whose state is addressed by parameter name."""

    def __init__(self, parameters: list[tuple[str, nn.Parameter]], section: Optim, *, total: int) -> None:
        self._section = section
        self._total = total
        self._parameters = parameters
        matrices = [p for _, p in parameters if p.ndim >= 2]
        vectors = [p for _, p in parameters if p.ndim < 2]
        self._adamw = torch.optim.AdamW(
            [
                {"params": matrices, "weight_decay": section.weight_decay},
                {"params": vectors, "weight_decay": 0.0},
            ],
            lr=section.lr,
            betas=section.betas,
            eps=section.eps,
            fused=True,
        )
        self.updates = 0
        """Updates done."""

    @property
    def lr(self) -> float:
        """Of the next update."""
        return learning_rate(self._section, update=self.updates, total=self._total)

    def zero_grad(self) -> None:
        """Forget the gradients; the next backward pass then writes its own instead of adding to zeros."""
        for _, parameter in self._parameters:
            parameter.grad = None

    def _complete_grad(self) -> None:
        """An update in which no sample contributes is still an update, in which momentum and decay act,
        exactly as if its zero gradient had been computed."""
        for _, parameter in self._parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)

    def clip(self) -> float:
        """Scale gradients to norm `clip` at most; returns the norm before."""
        self._complete_grad()
        parameters = [p for _, p in self._parameters]
        norm = nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
        if norm > self._section.clip:  # else one pass over all gradients would multiply them by 1
            nn.utils.clip_grads_with_norm_(parameters, self._section.clip, norm)
        return float(norm)

    def step(self) -> None:
        """One update at the current learning rate."""
        for group in self._adamw.param_groups:
            group["lr"] = self.lr
        self._adamw.step()
        self.updates += 1

    def save(self, directory: Path) -> None:
        """Moments and counters by parameter name, in one safetensors file."""
        tensors = {
            f"{name}.{kind}": value
            for name, parameter in self._parameters
            for kind, value in self._adamw.state[parameter].items()
        }
        with safetensors_at(directory / FILE):
            save_file(tensors, directory / FILE, metadata={"updates": str(self.updates)})

    def load(self, directory: Path, *, updates: int) -> None:
        """Take back what `save` wrote."""
        with safetensors_at(directory / FILE):
            tensors = load_file(directory / FILE)
        state: dict[torch.Tensor, dict[str, Any]] = {}
        for name, parameter in self._parameters:
            kinds = ("step", "exp_avg", "exp_avg_sq")
            if f"{name}.step" in tensors:
                state[parameter] = {kind: tensors[f"{name}.{kind}"] for kind in kinds}
        self._adamw.state.clear()
        self._adamw.state.update(state)
        self.updates = updates
