"""Functions with slime's signatures, as a run names them: a prefix, then where the function is.

The prefix says which signature; `strop.compat` calls it so. Where: `package.module.name`, as slime writes it,
`file.py:name`, or `file.py` alone.
"""

from collections.abc import Callable

SLIME = "slime:"
"""A generate function, reward, filter of groups, sample hook or data source, by the key that it is for."""
FILTER = "slime.filter:"
"""In `rollout.hooks`: `(args, groups)`, once a step with the groups to be trained; sets `remove_sample`."""
PROCESS = "slime.process:"
"""In `rollout.hooks`: `(args, all_samples, data_source)`, once a step, with the dropped groups too."""

PREFIXES = (SLIME, FILTER, PROCESS)


def split(spec: str) -> tuple[str, str]:
    """The prefix of a spec, "" when it has none, and the rest."""
    prefix = next((prefix for prefix in PREFIXES if spec.startswith(prefix)), "")
    return prefix, spec.removeprefix(prefix)


def is_slimes(spec: str | None) -> bool:
    """Whether a spec names a function with one of slime's signatures."""
    return spec is not None and split(spec)[0] != ""


def anchored(spec: str, join: Callable[[str], str]) -> str:
    """The spec with the file that it names, if it names one, put through `join`."""
    prefix, where = split(spec)
    file, colon, name = where.rpartition(":")
    if colon and file.endswith(".py"):
        return f"{prefix}{join(file)}:{name}"
    return prefix + join(where) if prefix and where.endswith(".py") else spec
