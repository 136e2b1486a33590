"""AdamW over float32 master weights: parameter groups, the learning rate's course, exact save and load."""

import math
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

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


@dataclass(frozen=True, slots=True)
class Moments:
    """What AdamW remembers of a parameter, by torch's names."""

    step: Tensor
    exp_avg: Tensor
    exp_avg_sq: Tensor

    @classmethod
    def of(cls, parameter: nn.Parameter) -> "Moments":
        """Before the first update."""
        zeros = torch.zeros_like(parameter.detach())
        return cls(torch.tensor(0.0), zeros, torch.zeros_like(zeros))

    def by_kind(self) -> dict[str, Tensor]:
        """As they are stored."""
        return {"step": self.step, "exp_avg": self.exp_avg, "exp_avg_sq": self.exp_avg_sq}


class Optimizer:
    """AdamW whose state is addressed by parameter name."""

    def __init__(self, parameters: list[tuple[str, nn.Parameter]], section: Optim, *, total: int) -> None:
        self._section = section
        self._total = total
        self._parameters = parameters
        self._moments: dict[str, Moments] = {}
        """Made at the first update."""
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
        for name, parameter in self._parameters:
            if name not in self._moments:
                self._moments[name] = Moments.of(parameter)
        self._update([(n, p) for n, p in self._parameters if p.ndim >= 2], decay=self._section.weight_decay)
        self._update([(n, p) for n, p in self._parameters if p.ndim < 2], decay=0.0)
        self.updates += 1

    @torch.no_grad()
    def _update(self, parameters: list[tuple[str, nn.Parameter]], *, decay: float) -> None:
        # The kernel itself: torch.optim, which calls it, loads torch's compiler for more than a second.
        if not parameters:
            return
        moments = [self._moments[name] for name, _ in parameters]
        steps = [each.step for each in moments]
        torch._foreach_add_(steps, 1)
        torch._fused_adamw_(
            [parameter for _, parameter in parameters],
            [parameter.grad for _, parameter in parameters],  # type: ignore[misc]
            [each.exp_avg for each in moments],
            [each.exp_avg_sq for each in moments],
            [],
            steps,
            lr=self.lr,
            beta1=self._section.betas[0],
            beta2=self._section.betas[1],
            weight_decay=decay,
            eps=self._section.eps,
            amsgrad=False,
            maximize=False,
        )

    def save(self, directory: Path) -> None:
        """Moments and counters by parameter name, in one safetensors file."""
        tensors = {
            f"{name}.{kind}": value
            for name, moments in self._moments.items()
            for kind, value in moments.by_kind().items()
        }
        with safetensors_at(directory / FILE):
            save_file(tensors, directory / FILE, metadata={"updates": str(self.updates)})

    def load(self, directory: Path, *, updates: int) -> None:
        """Take back what `save` wrote."""
        with safetensors_at(directory / FILE):
            tensors = load_file(directory / FILE)
        self._moments = {
            name: Moments(**{kind: tensors[f"{name}.{kind}"] for kind in ("step", "exp_avg", "exp_avg_sq")})
            for name, _ in self._parameters
            if f"{name}.step" in tensors
        }
        self.updates = updates
