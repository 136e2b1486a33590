"""Low-rank adapters inside a model (arXiv:2106.09685), made and stored by peft.

The adapted model is the policy, with the adapters off it is the reference, merged it is what an engine takes.
"""

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from strop.config.tree import Lora
from strop.errors import ConfigError, MissingPackage
from strop.nn.families import WITH_EXPERTS
from strop.nn.loading import CausalLM, outline
from strop.nn.saving import copy_companions, safetensors_at, write_weights
from strop.nn.weight_files import SINGLE, read_object

FOLDER = "adapter"
"""Of a checkpoint: the adapter alone, in peft's form. The merged model is beside it."""
_FILE = "adapter_model.safetensors"
_ALL = "all-linear"
_ATTENTION = frozenset({"q_proj", "k_proj", "v_proj", "o_proj"})


class Adapters:
    """Adapters on every matrix that `section.targets` names. They begin as no change at all.

    Only they require gradients afterwards. `seed` is of their random half.
    """

    def __init__(self, model: CausalLM, section: Lora, *, seed: int) -> None:
        import peft

        self.model = model
        targets = _matrices(model) if section.targets == [_ALL] else list(section.targets)
        self._config = peft.LoraConfig(
            r=section.rank,
            lora_alpha=section.alpha,
            target_modules=targets,
            base_model_name_or_path="",
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            peft.inject_adapter_in_model(self._config, model.module)
        model.use_modules()
        self._layers: dict[str, Any] = {
            name: module for name, module in model.module.named_modules() if _is_adapted(module)
        }

    def parameters(self) -> list[tuple[str, nn.Parameter]]:
        """What is trained."""
        return [(name, p) for name, p in self.model.module.named_parameters() if p.requires_grad]

    @torch.no_grad()
    def merged(self) -> Iterator[tuple[str, Tensor]]:
        """The whole model's weights by their names in its checkpoint; what has no adapter is not copied."""
        for name, parameter in self.model.module.named_parameters():
            owner, base, kind = name.rpartition(".base_layer.")
            if base and kind == "weight":
                yield (
                    f"{owner}.weight",
                    parameter.detach() + self._layers[owner].get_delta_weight("default"),
                )
            elif ".lora_" not in name:
                yield name.replace(".base_layer.", "."), parameter.detach()

    def lend(self, other: CausalLM) -> None:
        """Let `other`, the same model, use these tensors wherever no adapter changes them."""
        adapted = {f"{name}.weight" for name in self._layers}
        theirs = dict(other.named_parameters())
        for name, tensor in self.merged():
            if name not in adapted:
                theirs[name].data = tensor

    @contextmanager
    def off(self) -> Iterator[None]:
        """The model as it was before training, while the block runs."""
        for layer in self._layers.values():
            layer.enable_adapters(False)
        try:
            yield
        finally:
            for layer in self._layers.values():
                layer.enable_adapters(True)

    def save(self, directory: Path) -> None:
        """The merged model as a loadable directory, and the adapter alone in `adapter/`."""
        import peft

        copy_companions(self.model, directory)
        with safetensors_at(directory / SINGLE), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that a model with adapters is saved: it is merged
            write_weights(self.model, directory, dict(self.merged()))
        with safetensors_at(directory / FOLDER / _FILE):
            (directory / FOLDER).mkdir()
            state = peft.get_peft_model_state_dict(self.model.module, save_embedding_layers=False)
            # The prefix under which peft looks for them, when it wraps the model for inference.
            save_file(
                {f"base_model.model.{k}": v.contiguous() for k, v in state.items()},
                directory / FOLDER / _FILE,
            )
            self._config.save_pretrained(str(directory / FOLDER))

    @torch.no_grad()
    def read(self, directory: Path) -> None:
        """Take back the adapters that `save` wrote; the model's own weights have not changed since."""
        path = directory / FOLDER / _FILE
        with safetensors_at(path), safe_open(path, framework="pt") as file:
            for name, parameter in self.parameters():
                parameter.copy_(file.get_tensor("base_model.model." + name.replace(".default.", ".")))


def check_lora(section: Lora, model: Path) -> None:
    """Raises MissingPackage without peft, ConfigError if a target fits no matrix of the model in `model`."""
    try:
        import peft  # noqa: F401 - to see that it is there
    except ImportError as caught:
        raise MissingPackage("train.lora.rank > 0 needs peft: pip install 'strop[lora]'") from caught
    if read_object(model / "config.json")["model_type"] in WITH_EXPERTS and not _ATTENTION.issuperset(
        section.targets
    ):
        raise ConfigError(
            "train.lora.targets: the experts of this model are one tensor, which adapters do not fit; "
            f"give {json.dumps(sorted(_ATTENTION))}, or some of these"
        )
    known = sorted({name.rpartition(".")[2] for name in _matrices(outline(model))})
    if section.targets == [_ALL]:
        return
    for target in section.targets:
        if target not in known:
            raise ConfigError(
                f'train.lora.targets = "{target}" fits no matrix of the model that can have an adapter: '
                f'{", ".join(known)}; or give ["{_ALL}"] alone'
            )


def _matrices(model: CausalLM) -> list[str]:
    """Names of the layers that are one matrix and may be adapted; the head may not: its product is ours."""
    named = model.module.named_modules()
    return [n for n, layer in named if isinstance(layer, nn.Linear) and layer.weight is not model.head_VD]


def _is_adapted(module: nn.Module) -> bool:
    from peft.tuners.lora import LoraLayer

    return isinstance(module, LoraLayer)
