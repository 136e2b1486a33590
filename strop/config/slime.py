"""slime's flags that set something other than one key to their own value.

Flags with a key of their own are declared on the key (`tree.py`); flags that set nothing are answered in
`slime_flags.py`; those of evaluation are in `slime_eval.py`. A function here raises `ConfigError` without the
flag's name.
"""

import os
from collections.abc import Callable
from functools import partial
from typing import Any

from strop.config import slime_eval
from strop.config.flag_values import scalar
from strop.config.schema import KeyPath, nearest
from strop.config.settings import Settings
from strop.config.slime_flags import Answer
from strop.config.slime_paths import FILTER, PROCESS, SLIME, anchored
from strop.errors import ConfigError

Assignment = tuple[KeyPath, Any]

BETAS: KeyPath = ("train", "optim", "betas")
HOOKS: KeyPath = ("rollout", "hooks")
SINKS: KeyPath = ("telemetry", "sinks")
SOURCE: KeyPath = ("prompts", "source")
KL: KeyPath = ("algo", "kl_loss_coef")
TEACHER: KeyPath = ("algo", "teacher", "model")
TEACHERS: KeyPath = ("algo", "teachers")
OPSM: KeyPath = ("algo", "opsm_delta")
OPSM_DELTA = 1e-4
"""slime's default."""
ESTIMATORS = {"reinforce_plus_plus": "reinforce_pp", "reinforce_plus_plus_baseline": "reinforce_pp_baseline"}
"""slime's names of recipes → strop's, where they differ."""

SWITCHES: dict[str, Assignment] = {
    "--rollout-shuffle": (("prompts", "shuffle"), True),
    "--disable-grpo-std-normalization": (("algo", "normalize_std"), False),
    "--calculate-per-token-loss": (("algo", "aggregation"), "token_mean"),
    "--disable-rewards-normalization": (("algo", "advantage"), "returns"),
    "--normalize-advantages": (("algo", "whiten"), "bessel"),
    "--use-unbiased-kl": (("algo", "kl_unbiased"), True),
    "--use-rollout-logprobs": (("algo", "old"), "behavior"),
    "--use-tis": (("algo", "correction", "type"), "tis"),
    "--group-rm": (("reward", "group"), True),
    "--use-wandb": (SINKS, ["wandb"]),
    "--use-tensorboard": (SINKS, ["tensorboard"]),
}
"""Flags without a value."""

FUNCTIONS: dict[str, tuple[KeyPath, str]] = {
    "--custom-generate-function-path": (("rollout", "generate"), SLIME),
    "--custom-rm-path": (("reward", "fn"), SLIME),
    "--rollout-sample-hook-path": (HOOKS, SLIME),
    "--rollout-sample-filter-path": (HOOKS, FILTER),
    "--rollout-all-samples-process-path": (HOOKS, PROCESS),
    "--data-source-path": (SOURCE, SLIME),
    "--buffer-filter-path": (("prompts", "options", "buffer_filter"), SLIME),
}
"""Flags that name a function with a signature of slime's → its key, and the prefix that says which."""

ADDING = tuple(flag for flag, (path, _) in (FUNCTIONS | SWITCHES).items() if path in (HOOKS, SINKS))
"""Flags that add to a list, each time that they are given, and so may set the same key."""
REPEATABLE = ("--eval-prompt-data",)
"""Flags that may come more than once, as if their words had followed one."""

FILTERS = {
    f"slime.rollout.filter_hub.dynamic_sampling_filters.check_reward_nonzero_std{ending}": f"reward_std{own}"
    for ending, own in (("", ""), ("_with_fallback", "_or_fill"))
}
"""slime's own group filters → strop's names."""
SOURCES = ("RolloutDataSource", "RolloutDataSourceWithBuffer")
OWN_SOURCES = tuple(
    f"slime.{module}.{name}" for module in ("rollout.data_source", "data") for name in SOURCES
)
"""slime's own data sources: prompts in the order of `prompts.files`, which strop's are anyway."""


def adapted(flag: str, texts: list[str]) -> list[str]:
    """The words after a flag that is declared on a key, in strop's terms."""
    if flag == "--dynamic-sampling-filter-path":
        return [_own_filter(text) for text in texts]
    if flag == "--advantage-estimator":
        return [ESTIMATORS.get(text, text) for text in texts]
    return texts


def early(flag: str, texts: list[str]) -> list[Assignment] | None:
    """What a flag sets by itself; None when it is no such flag."""
    if flag in SWITCHES:
        _refuse_value(texts)
        return [SWITCHES[flag]]
    if flag in FUNCTIONS:
        return _function(flag, _one(texts, "the path of a function"))
    match flag:
        case "--adam-beta1" | "--adam-beta2":
            return [((*BETAS, int(flag[-1]) - 1), scalar(float, _one(texts, "a number")))]
        case "--eval-prompt-data":
            return [(slime_eval.DATASETS, slime_eval.named_sets(texts))]
        case slime_eval.CONFIG:
            return [(slime_eval.DATASETS, slime_eval.read_sets(texts))]
        case "--tis-threshold":
            return [(("algo", "correction", "high"), scalar(float, _one(texts, "a number")))]
        case "--rm-url":
            return [(("reward", "options", "url"), _one(texts, "an address"))]
    return None


def late(flag: str, texts: list[str], settings: Settings) -> list[Assignment]:
    """What a flag sets once the files and the other flags are known."""
    return LATE[flag](texts, settings)


def accepts(answer: Answer, texts: list[str]) -> bool:
    """The flag asks for what strop does anyway."""
    given = str(scalar(float, " ".join(texts)))
    return any(given == str(scalar(float, value)) for value in answer.holds)


def _own_filter(text: str) -> str:
    if text in FILTERS or text in FILTERS.values():
        return FILTERS.get(text, text)
    return _named(text, SLIME)


def _named(text: str, prefix: str) -> str:
    return anchored(f"{prefix}{text}", partial(os.path.join, os.getcwd()))


def _function(flag: str, text: str) -> list[Assignment]:
    path, prefix = FUNCTIONS[flag]
    if path == SOURCE and text in OWN_SOURCES:
        return []
    named = _named(text, prefix)
    return [(path, [named] if path == HOOKS else named)]


def _one(texts: list[str], what: str) -> str:
    if len(texts) != 1:
        raise ConfigError(f"takes one value, {what}, but got {' '.join(texts) or 'nothing'}")
    return texts[0]


def _clip_high(texts: list[str], settings: Settings) -> list[Assignment]:
    """slime's upper bound is its lower one unless it is given."""
    high: KeyPath = ("algo", "clip_high")
    return [] if settings.under(high) else [(high, scalar(float, _one(texts, "a number")))]


def _use_kl_loss(texts: list[str], settings: Settings) -> list[Assignment]:
    _refuse_value(texts)
    if settings.get(KL, 0.0) == 0:
        raise ConfigError(
            "algo.kl_loss_coef = 0 leaves nothing to use; give --kl-loss-coef 0.001, or remove --use-kl-loss"
        )
    return []


def _use_opsm(texts: list[str], settings: Settings) -> list[Assignment]:
    _refuse_value(texts)
    return [] if settings.under(OPSM) else [(OPSM, OPSM_DELTA)]


def _use_opd(texts: list[str], settings: Settings) -> list[Assignment]:
    _refuse_value(texts)
    if not settings.under(TEACHER) and not settings.under(TEACHERS):
        raise ConfigError("there is no teacher; give --opd-teacher-load DIRECTORY, or remove --use-opd")
    return []


def _refuse_value(texts: list[str]) -> None:
    if texts:
        raise ConfigError(f"takes no value, but {texts[0]} follows; remove {texts[0]}")


def _over_sample(texts: list[str], settings: Settings) -> list[Assignment]:
    wanted = scalar(int, _one(texts, "a whole number"))
    batch: KeyPath = ("rollout", "batch_size")
    size = settings.get(batch, nearest(batch).leaf.default)
    if not isinstance(wanted, int) or not isinstance(size, int):
        return [(("rollout", "over_sample"), wanted)]
    if wanted < size:
        raise ConfigError(f"{wanted} groups are fewer than rollout.batch_size = {size}; give at least {size}")
    return [(("rollout", "over_sample"), wanted - size)]


def _buffer_source(texts: list[str], settings: Settings) -> list[Assignment]:
    """A filter of the buffer needs slime's source that has one, unless the user's own is named."""
    del texts
    own = settings.under(SOURCE)
    return [] if own else [(SOURCE, f"{SLIME}slime.rollout.data_source.RolloutDataSourceWithBuffer")]


LATE: dict[str, Callable[[list[str], Settings], list[Assignment]]] = {
    "--eps-clip": _clip_high,
    "--use-kl-loss": _use_kl_loss,
    "--use-opd": _use_opd,
    "--use-opsm": _use_opsm,
    "--over-sampling-batch-size": _over_sample,
    "--buffer-filter-path": _buffer_source,
    **slime_eval.LATE,
}
EARLY = (
    *SWITCHES,
    *FUNCTIONS,
    "--adam-beta1",
    "--adam-beta2",
    "--eval-prompt-data",
    "--eval-config",
    "--rm-url",
    "--tis-threshold",
)
