"""What `algo.type` stands for: each recipe is a set of defaults over keys; files and flags override it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from strop.config.schema import KeyPath
from strop.config.settings import Place, Put, Settings

TYPE: KeyPath = ("algo", "type")
PRESETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "grpo": {},
        "dr_grpo": {"algo.normalize_std": False, "algo.aggregation": "seq_sum_const"},
        "dapo": {
            "algo.clip_low": 0.2,
            "algo.clip_high": 0.28,
            "algo.aggregation": "token_mean",
            "rollout.keep": "reward_std",
        },
        "gspo": {
            "algo.policy_loss": "gspo",
            "algo.aggregation": "seq_mean_token_mean",
            "algo.clip_low": 3e-4,
            "algo.clip_high": 4e-4,
        },
        "cispo": {"algo.policy_loss": "cispo", "algo.clip_low": 1.0},
        "rloo": {"algo.advantage": "leave_one_out", "algo.aggregation": "seq_mean_token_sum"},
        "remax": {"algo.advantage": "greedy", "algo.aggregation": "seq_mean_token_sum"},
        "reinforce_pp": {"algo.advantage": "returns", "algo.whiten": "bessel"},
        "reinforce_pp_baseline": {
            "algo.advantage": "group",
            "algo.normalize_std": False,
            "algo.whiten": "bessel",
        },
        "sft": {"algo.objective": "nll", "rollout.samples_per_prompt": 1},
        "dpo": {"algo.objective": "dpo", "rollout.samples_per_prompt": 2},
        "ipo": {"algo.objective": "ipo", "rollout.samples_per_prompt": 2},
        "kto": {"algo.objective": "kto", "rollout.samples_per_prompt": 1},
        "orpo": {"algo.objective": "orpo", "rollout.samples_per_prompt": 2},
        "simpo": {
            "algo.objective": "simpo",
            "rollout.samples_per_prompt": 2,
            "algo.preference.beta": 2.0,
        },
        "cpo": {
            "algo.objective": "cpo",
            "rollout.samples_per_prompt": 2,
            "algo.preference.nll_weight": 1.0,
        },
        "reward_model": {"algo.objective": "bradley_terry", "rollout.samples_per_prompt": 2},
        "opd": {"algo.advantage": "none", "reward.fn": "none"},
        "ppo": {"algo.advantage": "gae", "algo.whiten": "bessel", "algo.clip_high": 0.2},
    }
)
"""Type → dotted key → default. What the type does not name stays at the key's own default."""

_ORIGIN = "algo.type = "
_NOT_GIVEN = ("default", "batch identity")


def is_given(origin: str) -> bool:
    """Whether a file or flag set a value with this origin; others follow from what was set."""
    return origin not in _NOT_GIVEN and not origin.startswith(_ORIGIN)


def apply_preset(settings: Settings) -> None:
    """Put the defaults of `algo.type` where nothing was set; their origin names the type."""
    chosen = settings.get(TYPE, "grpo")
    preset = PRESETS.get(chosen, {}) if isinstance(chosen, str) else {}
    for key, value in preset.items():
        path: KeyPath = tuple(key.split("."))
        if not settings.under(path):
            settings.put(Put(path, value, Place(f"{_ORIGIN}{chosen}", (-2, 0))))
