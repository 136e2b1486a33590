"""slime's flags about evaluation, and its file of held-out sets (`--eval-config`)."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from strop.config import yaml_lines
from strop.config.flag_values import scalar
from strop.config.schema import KeyPath
from strop.config.settings import Settings
from strop.config.suggest import closest
from strop.config.toml_text import shown
from strop.errors import ConfigError

Assignment = tuple[KeyPath, Any]

DATASETS: KeyPath = ("eval", "datasets")
CONFIG = "--eval-config"
FOR_EVERY: dict[str, tuple[str, type]] = {
    "--n-samples-per-eval-prompt": ("samples_per_prompt", int),
    "--eval-temperature": ("temperature", float),
    "--eval-top-p": ("top_p", float),
    "--eval-top-k": ("top_k", int),
    "--eval-max-response-len": ("max_response_tokens", int),
    "--eval-input-key": ("input_key", str),
    "--eval-label-key": ("label_key", str),
    "--eval-tool-key": ("tool_key", str),
}
"""Flags that set one key of every data set → the key, and the type of its value."""

KEYS = {
    "prompt_key": "input_key",
    "input_key": "input_key",
    "label_key": "label_key",
    "tool_key": "tool_key",
    "rm_type": "reward",
    "n_samples_per_eval_prompt": "samples_per_prompt",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "max_response_len": "max_response_tokens",
    "stop": "stop",
}
"""Keys that a data set of slime's file, or its defaults, may have → strop's; beside `name` and `path`."""

NOT_YET = ("metadata_key", "min_new_tokens", "stop_token_ids", "metadata_overrides")


def named_sets(texts: list[str]) -> list[dict[str, Any]]:
    """`--eval-prompt-data NAME PATH …`"""
    if not texts or len(texts) % 2:
        raise ConfigError(f"takes pairs NAME PATH, but got {' '.join(texts) or 'nothing'}")
    pairs = zip(texts[::2], texts[1::2], strict=True)
    return [{"name": name, "files": [path]} for name, path in pairs]


def for_every(flag: str, texts: list[str], settings: Settings) -> list[Assignment]:
    """One key of every data set; a set of slime's file that says otherwise stays as it is there."""
    key, kind = FOR_EVERY[flag]
    if len(texts) != 1:
        raise ConfigError(f"takes one value, but got {' '.join(texts) or 'nothing'}")
    rows = {put.path[2] for put in settings.under(DATASETS) if len(put.path) > len(DATASETS)}
    if not rows:
        raise ConfigError("there is no eval data set; add --eval-prompt-data NAME PATH or [[eval.datasets]]")
    paths = [(*DATASETS, row, key) for row in sorted(rows, key=str)]
    open_paths = [path for path in paths if not _is_of_file(settings, path)]
    return [(path, scalar(kind, texts[0])) for path in open_paths]


def _is_of_file(settings: Settings, path: KeyPath) -> bool:
    return any(put.place.origin == CONFIG for put in settings.under(path))


def read_sets(texts: list[str]) -> list[dict[str, Any]]:
    """The data sets of slime's file, each with its `eval.defaults` where it does not say otherwise."""
    if len(texts) != 1:
        raise ConfigError(f"takes one YAML file, but got {' '.join(texts) or 'nothing'}")
    return _File(Path(texts[0])).sets()


class _File:
    def __init__(self, path: Path) -> None:
        self._name = str(path)
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
        document = yaml_lines.parse(text, self._name)
        self._table, self._lines = document.table, document.lines

    def sets(self) -> list[dict[str, Any]]:
        section = self._tables(self._table, (), ("eval",))["eval"]
        given = self._tables(section, ("eval",), ("defaults", "datasets"))
        defaults = self._translated(given.get("defaults") or {}, ("eval", "defaults"))
        rows = self._rows(given.get("datasets"))
        made = [self._set(row, path, defaults) for path, row in rows]
        if not made:
            raise self._wrong(("eval",), "eval.datasets is missing or empty; list NAME and PATH of each set")
        return made

    def _rows(self, given: Any) -> list[tuple[KeyPath, Any]]:
        here: KeyPath = ("eval", "datasets")
        if isinstance(given, dict):
            return [((*here, name), {"name": name, **_plain(row)}) for name, row in given.items()]
        return [((*here, place), row) for place, row in enumerate(given or [])]

    def _set(self, row: Any, path: KeyPath, defaults: Mapping[str, Any]) -> dict[str, Any]:
        if not isinstance(row, dict) or not {"name", "path"} <= row.keys():
            raise self._wrong(path, f"{shown(row)} needs a name and a path")
        own = {key: value for key, value in row.items() if key not in ("name", "path")}
        return {"name": row["name"], "files": [row["path"]], **defaults, **self._translated(own, path)}

    def _translated(self, table: Any, path: KeyPath) -> dict[str, Any]:
        for key in self._tables(table, path, (*KEYS, *NOT_YET)):
            if key in NOT_YET:
                raise self._wrong((*path, key), f"{key} is not supported yet; remove it")
        return {KEYS[key]: value for key, value in table.items() if value is not None}

    def _tables(self, table: Any, path: KeyPath, known: tuple[str, ...]) -> dict[str, Any]:
        where = ".".join(map(str, path)) or self._name
        if not isinstance(table, dict):
            raise self._wrong(path, f"{where} must be a table, got {shown(table)}")
        for key in table:
            if key not in known:
                meant = closest(str(key), known)
                way_out = f"did you mean {meant}?" if meant else f"the keys here are {', '.join(known)}"
                raise self._wrong((*path, key), f"{where}.{key} is unknown; {way_out}")
        if path == () and not table:
            raise self._wrong(path, "the file has no `eval:` table")
        return table

    def _wrong(self, path: KeyPath, text: str) -> ConfigError:
        line = next((self._lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self._lines), 1)
        return ConfigError(f"{self._name}:{line}: {text}")


def _plain(row: Any) -> dict[str, Any]:
    return row if isinstance(row, dict) else {"path": row}


LATE: dict[str, Callable[[list[str], Settings], list[Assignment]]] = {
    flag: partial(for_every, flag) for flag in FOR_EVERY
}
