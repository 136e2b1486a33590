"""slime's flags that set something other than one key to their own value.

Flags with a key of their own are declared on the key (`tree.py`); flags that set nothing are answered in
`slime_flags.py`. A function here raises `ConfigError` without the flag's name.
"""

from collections.abc import Callable
from typing import Any

from strop.config.flag_values import scalar
from strop.config.schema import KeyPath, nearest
from strop.config.settings import Settings
from strop.config.slime_flags import LATER, Answer
from strop.errors import ConfigError

Assignment = tuple[KeyPath, Any]

BETAS: KeyPath = ("train", "optim", "betas")
DATASETS: KeyPath = ("eval", "datasets")
KL: KeyPath = ("algo", "kl_loss_coef")

SWITCHES: dict[str, Assignment] = {
    "--rollout-shuffle": (("prompts", "shuffle"), True),
    "--disable-grpo-std-normalization": (("algo", "normalize_std"), False),
    "--calculate-per-token-loss": (("algo", "aggregation"), "token_mean"),
}
"""Flags without a value."""

FILTERS = {"slime.rollout.filter_hub.dynamic_sampling_filters.check_reward_nonzero_std": "reward_std"}
"""slime's own group filters → strop's names."""


def adapted(flag: str, texts: list[str]) -> list[str]:
    """The words after a flag that is declared on a key, in strop's terms."""
    match flag:
        case "--prompt-data":
            return [_whole_file(text) for text in texts]
        case "--dynamic-sampling-filter-path":
            return [_own_filter(text) for text in texts]
    return texts


def early(flag: str, texts: list[str]) -> list[Assignment] | None:
    """What a flag sets by itself; None when it is no such flag."""
    if flag in SWITCHES:
        if texts:
            raise ConfigError(f"takes no value, but {texts[0]} follows; remove {texts[0]}")
        return [SWITCHES[flag]]
    match flag:
        case "--adam-beta1" | "--adam-beta2":
            return [((*BETAS, int(flag[-1]) - 1), scalar(float, _one(texts, "a number")))]
        case "--eval-prompt-data":
            return [(DATASETS, _datasets(texts))]
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
    raise ConfigError(
        f"{text} is {LATER}: functions with slime's signature; "
        "--rollout.keep takes reward_std or file.py:name"
    )


def _whole_file(text: str) -> str:
    if text.endswith("]") and "@[" in text:
        raise ConfigError(
            f"{text} is {LATER}: a slice of a file; give {text.split('@[')[0]} without the slice"
        )
    return text


def _datasets(texts: list[str]) -> list[dict[str, Any]]:
    if not texts or len(texts) % 2:
        raise ConfigError(f"takes pairs NAME PATH, but got {' '.join(texts) or 'nothing'}")
    pairs = zip(texts[::2], texts[1::2], strict=True)
    return [{"name": name, "files": [_whole_file(path)]} for name, path in pairs]


def _one(texts: list[str], what: str) -> str:
    if len(texts) != 1:
        raise ConfigError(f"takes one value, {what}, but got {' '.join(texts) or 'nothing'}")
    return texts[0]


def _clip_high(texts: list[str], settings: Settings) -> list[Assignment]:
    """slime's upper bound is its lower one unless it is given."""
    high: KeyPath = ("algo", "clip_high")
    return [] if settings.under(high) else [(high, scalar(float, _one(texts, "a number")))]


def _use_kl_loss(texts: list[str], settings: Settings) -> list[Assignment]:
    if texts:
        raise ConfigError(f"takes no value, but {texts[0]} follows; remove {texts[0]}")
    if settings.get(KL, 0.0) == 0:
        raise ConfigError(
            "algo.kl_loss_coef = 0 leaves nothing to use; give --kl-loss-coef 0.001, or remove --use-kl-loss"
        )
    return []


def _over_sample(texts: list[str], settings: Settings) -> list[Assignment]:
    wanted = scalar(int, _one(texts, "a whole number"))
    batch: KeyPath = ("rollout", "batch_size")
    size = settings.get(batch, nearest(batch).leaf.default)
    if not isinstance(wanted, int) or not isinstance(size, int):
        return [(("rollout", "over_sample"), wanted)]
    if wanted < size:
        raise ConfigError(f"{wanted} groups are fewer than rollout.batch_size = {size}; give at least {size}")
    return [(("rollout", "over_sample"), wanted - size)]


def _every_dataset(key: str, kind: type) -> Callable[[list[str], Settings], list[Assignment]]:
    def set_all(texts: list[str], settings: Settings) -> list[Assignment]:
        value = scalar(kind, _one(texts, "a number"))
        rows = {put.path[2] for put in settings.under(DATASETS) if len(put.path) > len(DATASETS)}
        if not rows:
            raise ConfigError(
                "there is no eval data set; add --eval-prompt-data NAME PATH or [[eval.datasets]]"
            )
        return [((*DATASETS, row, key), value) for row in sorted(rows, key=str)]

    return set_all


LATE: dict[str, Callable[[list[str], Settings], list[Assignment]]] = {
    "--eps-clip": _clip_high,
    "--use-kl-loss": _use_kl_loss,
    "--over-sampling-batch-size": _over_sample,
    "--n-samples-per-eval-prompt": _every_dataset("samples_per_prompt", int),
    "--eval-temperature": _every_dataset("temperature", float),
}
EARLY = (*SWITCHES, "--adam-beta1", "--adam-beta2", "--eval-prompt-data")
