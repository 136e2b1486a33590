"""The policy losses that `algo.policy_loss` names, each from `LossInputs` to the loss of every token."""

from collections.abc import Callable

import torch
from torch import Tensor

from strop.algo.base import LossInputs
from strop.algo.losses import Surrogate, cispo, clipped_surrogate, gspo, gspo_token
from strop.config.algo import Algo
from strop.errors import PluginError
from strop.plugins import resolve

# N tokens

PolicyLoss = Callable[[LossInputs], Surrogate]
CustomLoss = Callable[[LossInputs], Tensor]
"""`(inputs) -> loss_N`: the loss of every token, differentiable in `inputs.logp_N`; its weight is applied by
strop, and what an untrained token has is ignored. It must not depend on how an update is split: what it needs
of a whole sample it asks `inputs.sums` for. `inputs.old_N` is what `algo.old` says."""

GROUP = "strop.policy_losses"
"""Entry points of installed packages that are policy losses."""


def open_policy_loss(section: Algo) -> PolicyLoss:
    """Of `algo.policy_loss`. Raises PluginError for a name that is none."""
    built_in: dict[str, PolicyLoss] = {
        "clip": lambda inputs: _clip(inputs, section),
        "gspo": lambda inputs: _of_sample(gspo, inputs, section),
        "gspo_token": lambda inputs: _of_sample(gspo_token, inputs, section),
        "cispo": lambda inputs: _cispo(inputs, section),
    }
    if section.policy_loss in built_in:
        return built_in[section.policy_loss]
    key = "algo.policy_loss"
    fn: CustomLoss = resolve(section.policy_loss, key=key, names=built_in, group=GROUP)
    return lambda inputs: _custom(fn, inputs, what=f"{key} = {section.policy_loss!r}")


def _clip(inputs: LossInputs, section: Algo) -> Surrogate:
    return clipped_surrogate(
        inputs.logp_N,
        inputs.old_N,
        advantage_N=inputs.advantage_N,
        clip_low=section.clip_low,
        clip_high=section.clip_high,
        dual_clip=section.dual_clip,
    )


def _of_sample(ratio: Callable[..., Surrogate], inputs: LossInputs, section: Algo) -> Surrogate:
    """A form of GSPO, whose ratio is that of the whole sample."""
    return ratio(
        inputs.logp_N,
        inputs.old_N,
        advantage_N=inputs.advantage_N,
        mask_N=inputs.mask_N,
        sums=inputs.sums,
        clip_low=section.clip_low,
        clip_high=section.clip_high,
    )


def _cispo(inputs: LossInputs, section: Algo) -> Surrogate:
    return cispo(
        inputs.logp_N,
        inputs.old_N,
        advantage_N=inputs.advantage_N,
        clip_low=section.clip_low,
        clip_high=section.clip_high,
    )


def _custom(fn: CustomLoss, inputs: LossInputs, *, what: str) -> Surrogate:
    loss_N: object = fn(inputs)
    if not isinstance(loss_N, Tensor) or loss_N.shape != inputs.logp_N.shape:
        told = list(loss_N.shape) if isinstance(loss_N, Tensor) else f"a {type(loss_N).__name__}"
        raise PluginError(f"{what}: expected a tensor of {len(inputs.logp_N)} losses, got {told}")
    none_N = torch.zeros_like(inputs.mask_N)
    return Surrogate(loss_N, clipped_low_N=none_N, clipped_high_N=none_N)
