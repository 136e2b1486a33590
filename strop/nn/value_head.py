"""A head that gives one number a state: what a critic expects of it, or what a reward model makes of an end.

It lies beside the weights of its trunk, so that a directory with both is a critic or a reward model, and
still a language model for whoever only reads that.
"""

from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from strop.errors import ConfigError, RunError
from strop.nn.loading import CausalLM
from strop.nn.saving import safetensors_at

# N states, D hidden size

FILE = "value_head.safetensors"
_NAMES = ("weight", "bias")


class ValueHead:
    """weight · hidden + bias, in float32 or wider whatever the trunk computes in.

    It begins as 0: the first values then say nothing of what random numbers would say, and a critic's first
    advantages are the returns themselves.
    """

    def __init__(self, hidden_size: int) -> None:
        self.weight_1D = nn.Parameter(torch.zeros(1, hidden_size))
        self.bias_1 = nn.Parameter(torch.zeros(1))

    def __call__(self, hidden_ND: Tensor) -> Tensor:
        """[N], differentiable. In units of reward: no temperature divides them."""
        hidden_ND = hidden_ND.to(torch.promote_types(hidden_ND.dtype, self.weight_1D.dtype))
        return torch.mv(hidden_ND, self.weight_1D[0].to(hidden_ND.dtype)) + self.bias_1

    def named_parameters(self) -> list[tuple[str, nn.Parameter]]:
        """By names that no model's parameters have."""
        return [(f"value_head.{name}", p) for name, p in zip(_NAMES, self._both(), strict=True)]

    def save(self, directory: Path) -> None:
        """Beside the model in `directory`."""
        tensors = {name: p.detach().contiguous() for name, p in zip(_NAMES, self._both(), strict=True)}
        with safetensors_at(directory / FILE):
            save_file(tensors, directory / FILE, metadata={"format": "1"})

    @torch.no_grad()
    def read(self, directory: Path) -> None:
        """Take back what `save` wrote. Raises RunError for the head of a trunk of another size."""
        with safetensors_at(directory / FILE), safe_open(directory / FILE, framework="pt") as file:
            for name, parameter in zip(_NAMES, self._both(), strict=True):
                stored = file.get_tensor(name)
                if stored.shape != parameter.shape:
                    raise RunError(
                        f"{directory / FILE}: {name} is {list(stored.shape)}, and the model beside it needs "
                        f"{list(parameter.shape)}: it is the head of another model"
                    )
                parameter.copy_(stored)

    def _both(self) -> tuple[nn.Parameter, nn.Parameter]:
        return self.weight_1D, self.bias_1


def open_head(model: CausalLM) -> ValueHead:
    """The head in the directory that `model` came from, or a new one where there is none."""
    head = ValueHead(model.head_VD.shape[1])
    if has_head(model.source):
        head.read(model.source)
    return head


def has_head(directory: Path) -> bool:
    """Whether the model in `directory` is a critic or a reward model."""
    return (directory / FILE).is_file()


def check_head(directory: Path, *, key: str) -> None:
    """Raises ConfigError, opened by `key`, unless there is a head beside the model in `directory`."""
    if not has_head(directory):
        raise ConfigError(
            f'{key} = "{directory}": a language model without {FILE}, which scores nothing; expected a '
            'checkpoint of a run with algo.type = "reward_model"'
        )


def scoring_parameters(model: CausalLM) -> list[tuple[str, nn.Parameter]]:
    """The trunk's. The matrix of an untied language head has no part in a value: it would only decay."""
    return [(name, p) for name, p in model.named_parameters() if not name.startswith("lm_head.")]
