"""slime's import names → what strop has in their place, so that functions written against slime import it.

`install` makes `slime.…` importable, and `strop.compat.slime.…`; it runs when a run names a function with one
of slime's signatures. What slime has beyond the table is an ImportError that says so.
"""

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

ROOTS = ("slime", "strop.compat.slime")
MODULES = {
    "data": "strop.compat.data_source",
    "rollout.data_source": "strop.compat.data_source",
    "rollout.filter_hub.base_types": "strop.compat.filters",
    "rollout.filter_hub.dynamic_sampling_filters": "strop.compat.filters",
    "rollout.sglang_rollout": "strop.compat.generation",
    "utils.http_utils": "strop.compat.client",
    "utils.processing_utils": "strop.compat.tokenizer",
    "utils.types": "strop.compat.sample",
}
"""Below each root."""
PACKAGES = {"", *(name[:at] for name in MODULES for at, letter in enumerate(name) if letter == ".")}


def install() -> None:
    """Once a process; more often is harmless."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - the import system's
        target: ModuleType | None = None,  # noqa: ARG002 - the import system's
    ) -> ModuleSpec | None:
        """Of a module below one of the roots; of `strop.compat.slime` itself there is a file."""
        root = next((root for root in ROOTS if f"{fullname}.".startswith(f"{root}.")), None)
        if root is None or fullname == ROOTS[1]:
            return None
        name = fullname.removeprefix(root).removeprefix(".")
        if name in PACKAGES:
            return ModuleSpec(fullname, _Loader(None), is_package=True)
        if name in MODULES:
            return ModuleSpec(fullname, _Loader(MODULES[name]))
        has = ", ".join(f"slime.{known}" for known in MODULES)
        raise ModuleNotFoundError(f"strop has nothing for {fullname}; it has {has}", name=fullname)


class _Loader(Loader):
    def __init__(self, source: str | None) -> None:
        self._source = source

    def create_module(self, spec: ModuleSpec) -> None:
        """As the import system does it."""

    def exec_module(self, module: ModuleType) -> None:
        """The public names of the module that stands in for slime's; a package has none of its own."""
        if self._source is not None:
            found = vars(importlib.import_module(self._source))
            module.__dict__.update({name: value for name, value in found.items() if name[0] != "_"})
