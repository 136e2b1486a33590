"""What an unknown key or flag was meant to be."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from strop.config.keys import Section
from strop.config.schema import KeyPath, Leaf, children, leaves, slime_flags
from strop.config.toml_text import dotted
from strop.config.tree import Config


def closest(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate that looks most like `word`, if one does; case, `-` and `_` do not matter."""
    by_plain = {_plain(candidate): candidate for candidate in candidates}
    found = get_close_matches(_plain(word), by_plain, n=1, cutoff=0.65)
    return by_plain[found[0]] if found else None


def misspelt(word: str, names: Iterable[str]) -> str | None:
    """The name that `word` becomes by removing, adding, changing or swapping one letter."""
    return next((name for name in names if _is_one_edit(word, name)), None)


def unknown_key(path: KeyPath, section: type[Section]) -> str:
    """The message for a key that `section` does not have."""
    meant = _meant(path, section)
    way_out = (
        f"did you mean {dotted(meant)}?" if meant else f"the keys here are {', '.join(children(section))}"
    )
    return f"{dotted(path)} is unknown; {way_out}"


def unknown_flag(flag: str, others: Iterable[str]) -> str:
    """The message for a flag that nothing answers to; `others` are the flags that are not dotted keys."""
    path, section = _deepest(flag.removeprefix("--").split("."))
    known = [*(f"--{dotted(key)}" for key, _ in leaves()), *others]
    near = misspelt(flag, known)
    if near:
        return f"unknown flag; did you mean {near}?"
    if len(path) == 1:
        found = closest(flag, known)
        way_out = f"did you mean {found}?" if found else "`strop config --keys` lists all"
        return f"unknown flag; {way_out}"
    if path[-1] == "":
        return f"unknown flag; it names a section, whose keys are {', '.join(children(section))}"
    meant = _meant(path, section)
    if meant:
        return f"unknown flag; did you mean --{dotted(meant)}?"
    return f"unknown flag; the keys of {dotted(path[:-1])} are {', '.join(children(section))}"


def _meant(path: KeyPath, section: type[Section]) -> KeyPath | None:
    name = str(path[-1])
    sibling = closest(name, children(section))
    if sibling:
        return (*path[:-1], sibling)
    by_text = {dotted(key): key for key, _ in leaves()}
    whole = misspelt(dotted(path), by_text)
    if whole:
        return by_text[whole]
    if f"--{name}" in slime_flags():
        return slime_flags()[f"--{name}"]
    elsewhere = next((key for key, _ in leaves() if key[-1] == name), None)
    if elsewhere or name in children(Config):
        return elsewhere or (name,)
    flag = closest(f"--{name}", slime_flags())
    return slime_flags()[flag] if flag else None


def _deepest(parts: Sequence[str]) -> tuple[KeyPath, type[Section]]:
    """The innermost section that `parts` reaches, and the path up to the first name that it does not have
    (an empty name when the parts end at the section)."""
    section: type[Section] = Config
    path: KeyPath = ()
    for part in parts:
        child = children(section).get(part)
        if part.isdecimal() and path and isinstance(path[-1], str):
            path = (*path, int(part))
        elif child is None or (isinstance(child, Leaf) and not child.rows):
            return (*path, part), section
        else:
            path = (*path, part)
            section = (child.rows or section) if isinstance(child, Leaf) else child
    return (*path, ""), section


def _is_one_edit(one: str, other: str) -> bool:
    if abs(len(one) - len(other)) > 1 or one == other:
        return False
    start = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))
    one, other = one[start:], other[start:]
    changed = one[1:] == other[1:]
    removed, added = one == other[1:], one[1:] == other
    swapped = one[:2] == other[:2][::-1] and one[2:] == other[2:]
    return changed or removed or added or swapped


def _plain(word: str) -> str:
    return word.lower().replace("-", "_")
