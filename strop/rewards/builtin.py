"""The rewards that come with strop, by name: where each is, and what it needs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """One of them; the first line of its docstring is its line of help."""

    path: str
    label: str | None = None
    """A function of a prompt that raises ValueError when its label cannot be compared with; None: the label
    is not read."""
    needs_math: bool = False
    """Whether it is given worker processes that compare with math-verify."""
    gives_table: bool = False
    """Whether `reward.score_key` can choose among its scores."""
    asks: bool = False
    """Whether it asks a language model: it is given an `Asking`, and every question is a call of its own."""
    of_groups: Mapping[str, Any] = field(default_factory=dict)
    """Options with which it scores the samples of a group together; empty: it never does."""
    compares: bool = False
    """Whether it then compares them with one another: one alone has no score."""
    can_be_boxed: bool = False
    """Whether `boxed_<name>` is a reward too: the same of what the last box of the response holds."""

    def scores_groups(self, options: Mapping[str, Any]) -> bool:
        """Whether it does with these options."""
        return bool(self.of_groups) and self.of_groups.items() <= options.items()


_HERE = "strop.rewards"

TABLE = {
    "dapo": BuiltIn(f"{_HERE}.dapo:Dapo", label=f"{_HERE}.dapo:check_label", gives_table=True),
    "deepscaler": BuiltIn(
        f"{_HERE}.boxed:DeepScaler", label=f"{_HERE}.equality:check_label", needs_math=True, gives_table=True
    ),
    "exact": BuiltIn(f"{_HERE}.rules:exact", label=f"{_HERE}.rules:check_any", can_be_boxed=True),
    "f1": BuiltIn(f"{_HERE}.words:f1", label=f"{_HERE}.rules:check_any", can_be_boxed=True),
    "first_number": BuiltIn(
        f"{_HERE}.rules:first_number", label=f"{_HERE}.rules:check_number", can_be_boxed=True
    ),
    "format": BuiltIn(f"{_HERE}.rules:Format", can_be_boxed=True),
    "gpqa": BuiltIn(f"{_HERE}.choices:gpqa", label=f"{_HERE}.choices:check_label", can_be_boxed=True),
    "gsm8k": BuiltIn(f"{_HERE}.gsm8k:gsm8k", label=f"{_HERE}.gsm8k:check_label", can_be_boxed=True),
    "judge": BuiltIn(f"{_HERE}.judge:Judge", asks=True, of_groups={"form": "pairwise"}, compares=True),
    "math": BuiltIn(
        f"{_HERE}.boxed:Math", label=f"{_HERE}.equality:check_label", needs_math=True, gives_table=True
    ),
    "model": BuiltIn(f"{_HERE}.model:Model", asks=True, of_groups={"together": True}),
    "none": BuiltIn(f"{_HERE}.rules:none"),
    "overlong": BuiltIn(f"{_HERE}.overlong:Overlong"),
    "random": BuiltIn(f"{_HERE}.chance:Chance"),
    "regex": BuiltIn(f"{_HERE}.rules:Regex", label=f"{_HERE}.rules:check_any", can_be_boxed=True),
    "remote": BuiltIn(f"{_HERE}.remote:Remote", gives_table=True, can_be_boxed=True),
}

PATHS = {name: entry.path for name, entry in TABLE.items()}
"""Name → import path."""

RENAMED = {"remote_rm": "remote"}
"""slime's names of rewards, where ours differ; rows name rewards in `metadata.rm_type`."""

BOXED = "boxed_"

REFUSED = {
    "ifbench": "its checks are a program that would be fetched and installed in the middle of a run; install "
    "them yourself and name a function of yours: file.py:name"
}
"""Rewards of slime that are not here, and why."""


def entry_of(name: str) -> BuiltIn | None:
    """What `name` is, also as slime spells it or with `boxed_` before it; None: not built in."""
    plain = RENAMED.get(name, name)
    return TABLE.get(plain) or TABLE.get(plain.removeprefix(BOXED))
