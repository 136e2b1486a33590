"""Models from directories, through transformers' own loading: safetensors only, no code from elsewhere."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from strop.nn import attention


class CausalLM:
    """A causal language model split where strop needs it: the trunk, and the head's matrix.

    `trunk(ids, positions, attend)` gives hidden states; log-probs are computed from these and `head_VD`
    in chunks, since full logits are never needed.
    """

    def __init__(self, module: Any, source: Path) -> None:
        self.module: nn.Module = module
        self.source = source
        self._trunk = module.model
        self._head = module.lm_head
        config = module.config
        self.num_layers: int = config.num_hidden_layers
        self.num_kv_heads: int = config.num_key_value_heads
        self.head_dim: int = config.head_dim or config.hidden_size // config.num_attention_heads
        self.max_positions: int = config.max_position_embeddings
        self.vocab_size: int = config.vocab_size

    @property
    def head_VD(self) -> Tensor:
        return self._head.weight

    @property
    def dtype(self) -> torch.dtype:
        return self._head.weight.dtype

    def trunk(self, ids_BT: Tensor, positions_BT: Tensor, attend: attention.Attend) -> Tensor:
        """Hidden states [B, T, D] after the last norm."""
        return self._trunk(
            input_ids=ids_BT, position_ids=positions_BT, use_cache=False, attend=attend
        ).last_hidden_state

    def named_parameters(self) -> list[tuple[str, nn.Parameter]]:
        """In the module's order; tied parameters once."""
        return list(self.module.named_parameters())


def load_model(path: Path, dtype: torch.dtype) -> CausalLM:
    """The model in `path`, in evaluation mode (no dropout: training scores what was sampled).

    `catalog.model_path` has refused what strop's attention cannot serve.
    """
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()  # strop's own console shows progress
    attention.register()
    module = AutoModelForCausalLM.from_pretrained(
        path,
        dtype=dtype,
        attn_implementation=attention.NAME,
        local_files_only=True,
        use_safetensors=True,
        trust_remote_code=False,
    )
    return CausalLM(module.eval(), path)
