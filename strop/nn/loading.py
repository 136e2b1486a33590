"""Models from directories, safetensors only, no code from elsewhere: Llama's kin as they are, others through
transformers' own loading.
"""

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from strop.errors import ConfigError, first_line
from strop.nn import attention
from strop.nn.fused import fused_trunk
from strop.nn.head import next_logits
from strop.nn.reading import read_llama, shape_of_llama

_UNFIT = (
    *(OSError, ValueError, LookupError, TypeError, AttributeError, AssertionError, ImportError),
    SafetensorError,
)
"""What transformers raises on a config.json or weights that it cannot take."""


class CausalLM:
    """A causal language model split where strop needs it: the trunk, and the head's matrix.

    `trunk(ids, positions, attend)` gives hidden states; the trainer computes log-probs from these, `head_VD`
    and `final_softcap` in chunks, since full logits are never needed.
    """

    def __init__(self, module: Any, source: Path) -> None:
        self.module: nn.Module = module
        self.source = source
        self._trunk = module.model
        self._head = module.lm_head
        config = module.config
        self.num_layers: int = config.num_hidden_layers
        self.num_kv_heads: int = config.num_key_value_heads
        self.head_dim: int = self._trunk.layers[0].self_attn.head_dim
        self.max_positions: int = config.max_position_embeddings
        self.vocab_size: int = config.vocab_size
        self.final_softcap: float | None = config.to_dict().get("final_logit_softcapping")
        """Logits x become cap · tanh(x / cap); None: they stay. Few families have such a key."""
        # transformers gives the padding token's embedding no gradient. Nothing is padded here: where the id
        # occurs (it may be the end-of-turn id), it is a token like any other.
        self._trunk.embed_tokens.padding_idx = None
        # An outline has nothing to join, and to join it would load torch's compiler.
        self._fused = None if self.head_VD.is_meta else fused_trunk(module)

    @property
    def head_VD(self) -> Tensor:
        return self._head.weight

    @property
    def dtype(self) -> torch.dtype:
        return self._head.weight.dtype

    @property
    def is_fused(self) -> bool:
        """Whether the trunk is strop's own, of few products."""
        return self._fused is not None

    def trunk(self, ids_BT: Tensor, positions_BT: Tensor, attend: attention.Attend) -> Tensor:
        """Hidden states [B, T, D] after the last norm."""
        if self._fused is not None:
            return self._fused(ids_BT, positions_BT, attend)
        return self._trunk(
            input_ids=ids_BT, position_ids=positions_BT, use_cache=False, return_dict=True, attend=attend
        ).last_hidden_state

    def use_modules(self) -> None:
        """Let the model's own modules run: something in them was changed."""
        self._fused = None

    def logits(self, hidden_ND: Tensor) -> Tensor:
        """Next-token logits [N, V], capped; see `head.next_logits`."""
        return next_logits(hidden_ND, self.head_VD, self.final_softcap)

    def named_parameters(self) -> list[tuple[str, nn.Parameter]]:
        """In the module's order; tied parameters once."""
        return list(self.module.named_parameters())


def load_model(path: Path, dtype: torch.dtype) -> CausalLM:
    """The model in `path`, in evaluation mode (no dropout: training scores what was sampled).

    `catalog.model_path` has refused what strop's attention cannot serve. Raises ConfigError as `outline`.
    """
    return CausalLM(_pretrained(path, dtype=dtype, device=None).eval(), path)


def outline(path: Path) -> CausalLM:
    """The model in `path` without its weights: names and shapes alone.

    Refuses a model whose weights are not exactly those that its config.json asks for: transformers gives
    random values to a weight that is missing and leaves out one that it does not expect. Raises ConfigError
    that names the first.
    """
    return CausalLM(_pretrained(path, dtype=torch.float32, device="meta"), path)


def _pretrained(path: Path, *, dtype: torch.dtype, device: str | None) -> Any:
    shape = shape_of_llama(path)
    module = read_llama(path, shape, dtype=None if device else dtype) if shape is not None else None
    return module or _of_transformers(path, dtype=dtype, device=device)


def _of_transformers(path: Path, *, dtype: torch.dtype, device: str | None) -> Any:
    from huggingface_hub.errors import StrictDataclassError
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()  # strop's own console shows progress
    logging.set_verbosity_error()  # what it warns of is refused below
    attention.register()
    try:
        module, report = AutoModelForCausalLM.from_pretrained(
            path,
            dtype=dtype,
            device_map=device,
            attn_implementation=attention.NAME,
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
        )
    except (*_UNFIT, StrictDataclassError) as caught:
        raise ConfigError(f'model = "{path}": cannot be loaded: {_reason(caught)}') from caught
    _refuse_strangers(report, path)
    return module


def _refuse_strangers(report: dict[str, Any], path: Path) -> None:
    wrong = [f"weight {name} is missing" for name in sorted(report["missing_keys"])]
    wrong += [f"weight {name} is not one of this model's" for name in sorted(report["unexpected_keys"])]
    wrong += [
        f"weight {name} has shape {list(found)}, expected {list(expected)}"
        for name, found, expected in sorted(report["mismatched_keys"])
    ]
    if wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise ConfigError(f'model = "{path}": {wrong[0]}{more}; config.json and weights must be of one model')


def _reason(error: Exception) -> str:
    """The last line: the first may only say which validator speaks."""
    return first_line(f"{type(error).__name__}: {error}".strip().split("\n")[-1].strip())
