"""Tiny random models of every supported family, whose windows, caps and experts all have something to do."""

from pathlib import Path
from typing import Any

import torch

COMMON = {
    "vocab_size": 264,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.25,
    "bos_token_id": None,
    "eos_token_id": 256,
    "pad_token_id": None,
}
MOE = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24}
ALTERNATING = ["sliding_attention", "full_attention", "sliding_attention"]
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
YARN = {
    "rope_type": "yarn",
    "rope_theta": 10000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 32,
}
LINEAR = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0}

FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {"head_dim": 12, "attention_bias": True, "rope_parameters": LLAMA3},
    "qwen2": {"use_sliding_window": True, "sliding_window": 6, "max_window_layers": 1},
    "qwen3": {"head_dim": 12, "tie_word_embeddings": True, "rope_parameters": YARN},
    "qwen3_moe": {"head_dim": 12, "decoder_sparse_step": 2, "norm_topk_prob": True, **MOE},
    "gemma": {"head_dim": 12, "tie_word_embeddings": True, "num_key_value_heads": 1},
    "gemma2": {
        "head_dim": 12,
        "query_pre_attn_scalar": 20,
        "sliding_window": 6,
        "layer_types": ALTERNATING,
        "attn_logit_softcapping": 2.0,
        "final_logit_softcapping": 3.0,
        "tie_word_embeddings": False,
        "attention_dropout": 0.5,
    },
    "gemma3_text": {
        "head_dim": 12,
        "query_pre_attn_scalar": 20,
        "sliding_window": 6,
        "layer_types": ALTERNATING,
    },
    "mistral": {"sliding_window": 6, "attention_dropout": 0.5},
    "mixtral": {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 6},
    "phi3": {"sliding_window": 6, "resid_pdrop": 0.5, "partial_rotary_factor": 0.5},
    "olmo2": {"rope_parameters": LINEAR},
    "olmo3": {"sliding_window": 6, "layer_types": ALTERNATING},
    "qwen2_moe": {"shared_expert_intermediate_size": 24, **MOE},
    "smollm3": {
        "no_rope_layers": [1, 0, 1],
        "use_sliding_window": True,
        "sliding_window": 6,
        "layer_types": ALTERNATING,
    },
}


def make_family(family: str, path: Path) -> Path:
    """Save a random model of the family in `path`; norms and biases are random too."""
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    config = AutoConfig.for_model(family, **{**COMMON, **FAMILIES[family]})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(config, attn_implementation="eager")
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.ndim == 1:
                    parameter.add_(torch.randn_like(parameter), alpha=0.2)
            # Gemma scales its embeddings up: unless they are small, every token predicts itself.
            model.get_input_embeddings().weight.mul_(0.2)
    path.mkdir(parents=True)
    model.save_pretrained(path)
    return path
