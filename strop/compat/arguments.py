"""`args`: what functions written against slime read, made from the run's configuration.

A frozen object with slime's attribute names. What a flag of slime's sets here is there under the flag's name;
so is what strop does anyway (`args.partial_rollout` is False). Any other name is an AttributeError that says
it, and setting one is refused.
"""

from copy import deepcopy
from dataclasses import make_dataclass
from pathlib import Path
from typing import Any

from strop.config.flag_values import inline
from strop.config.schema import slime_flags
from strop.config.slime import ESTIMATORS
from strop.config.slime_flags import ANSWERS
from strop.config.slime_paths import FILTER, PROCESS, SLIME, split
from strop.config.tree import Config

NAME = "args of slime's, as far as strop has them"
FACTS: dict[str, Any] = {
    "partial_rollout": False,
    "mask_offpolicy_in_partial_rollout": False,
    "rollout_global_dataset": True,
    "rollout_skip_special_tokens": False,
    "use_rollout_routing_replay": False,
    "use_routing_replay": False,
    "debug_rollout_only": False,
    "debug_train_only": False,
    "ci_test": False,
    "multimodal_keys": None,
    "dump_details": None,
    "rollout_function_path": "slime.rollout.sglang_rollout.generate_rollout",
}
"""What holds of every run, and is not the value of a flag that strop accepts."""


_SLIMES_NAMES = {own: theirs for theirs, own in ESTIMATORS.items()}


def make_args(config: Config, *, model: Path, router: tuple[str, int] | None) -> Any:
    """The object; strop's own configuration is its `strop_config`. `router`: where `/generate` answers, if it
    does."""
    values = {**_held(), **FACTS, **_declared(config), **_functions(config), **_translated(config)}
    values["hf_checkpoint"] = str(model.absolute())
    if len(config.prompts.files) == 1:
        values["prompt_data"] = config.prompts.files[0]
    else:
        values["prompt_data"] = config.prompts.files or None
    values["strop_config"] = config
    if router is not None:
        values["sglang_router_ip"], values["sglang_router_port"] = router
    made = make_dataclass(NAME, sorted(values), frozen=True, eq=False, repr=False)
    return made(**deepcopy(values))


def attribute(flag: str) -> str:
    """`--rollout-batch-size` → `rollout_batch_size`."""
    return flag.removeprefix("--").replace("-", "_")


def _declared(config: Config) -> dict[str, Any]:
    """Flags that are declared on keys; an empty list is slime's None."""
    values = {}
    for flag, path in slime_flags().items():
        value: Any = config
        for part in path:
            value = value.__dict__[part]
        values[attribute(flag)] = None if value == [] else value
    return values


def _held() -> dict[str, Any]:
    """Flags that ask for what strop does anyway, at the value that does."""
    values: dict[str, Any] = {}
    for answer in ANSWERS:
        for flag in answer.flags.split() if answer.holds else ():
            name, text = attribute(flag), answer.holds[0]
            if text:
                values[name] = inline(text)
            else:
                values[name.removeprefix("no_")] = not name.startswith("no_")
    return values


def _functions(config: Config) -> dict[str, Any]:
    hooks = [split(spec) for spec in config.rollout.hooks]
    options = config.prompts.options
    by_prefix = {
        prefix: [path for own, path in hooks if own == prefix] for prefix in (SLIME, FILTER, PROCESS)
    }
    return {
        "custom_generate_function_path": _path(config.rollout.generate),
        "custom_rm_path": _path(config.reward.fn),
        "rm_type": None if split(config.reward.fn)[0] else config.reward.fn,
        "dynamic_sampling_filter_path": _path(config.rollout.keep) or config.rollout.keep,
        "data_source_path": _path(config.prompts.source),
        "buffer_filter_path": _path(options.get("buffer_filter")),
        "rollout_sample_hook_path": by_prefix[SLIME],
        "rollout_sample_filter_path": next(iter(by_prefix[FILTER]), None),
        "rollout_all_samples_process_path": next(iter(by_prefix[PROCESS]), None),
    }


def _path(spec: str | None) -> str | None:
    prefix, path = split(spec or "")
    return path if prefix else None


def _translated(config: Config) -> dict[str, Any]:
    """Flags of `config/slime.py` and `config/slime_eval.py`, read back from their keys."""
    algo, rollout, sinks = config.algo, config.rollout, config.telemetry.sinks
    beta1, beta2 = config.train.optim.betas
    sets = config.eval.datasets
    return {
        "rollout_shuffle": config.prompts.shuffle,
        "grpo_std_normalization": algo.normalize_std,
        "calculate_per_token_loss": algo.aggregation == "token_mean",
        "use_kl_loss": algo.kl_loss_coef > 0,
        "use_unbiased_kl": algo.kl_unbiased,
        "normalize_advantages": algo.whiten != "none",
        "rewards_normalization": algo.advantage == "group",
        "use_rollout_logprobs": algo.old == "behavior",
        "use_tis": algo.correction.type == "tis",
        "use_opd": algo.is_taught,
        "use_opsm": algo.opsm_delta is not None,
        "advantage_estimator": _SLIMES_NAMES.get(algo.type, algo.type),
        "adam_beta1": beta1,
        "adam_beta2": beta2,
        "group_rm": config.reward.group,
        "rm_url": config.reward.options.get("url"),
        "over_sampling_batch_size": rollout.batch_size + rollout.over_sample,
        "use_wandb": "wandb" in sinks,
        "use_tensorboard": "tensorboard" in sinks,
        "eval_interval": config.eval.every or None,
        "save_interval": config.store.checkpoint_every or None,
        "eval_prompt_data": [word for s in sets for word in (s.name, *s.files)] or None,
        "eval_reward_key": config.reward.score_key,
    }
