"""What pydantic found wrong with a value, in one line for a person."""

from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from strop.config.schema import KeyPath, Leaf, Target, nearest, words
from strop.config.settings import Place, Problem, Settings
from strop.config.suggest import closest
from strop.config.toml_text import dotted, shown, write_value

BOUNDS = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
}
LAST = (2_000_000, 0)
"""Sorts what is missing behind what is wrong."""


def complaints(error: ValidationError, settings: Settings, last: str, *, missing: bool) -> list[Problem]:
    """One problem for each key; `last` is where a missing key would have been looked for.

    `missing`: also name keys that are missing.
    """
    found: dict[KeyPath, Problem] = {}
    for detail in error.errors(include_url=False, include_context=True):
        target = nearest(detail["loc"])
        is_wanted = missing or settings.under(target.path)
        if is_wanted and target.path not in found:
            found[target.path] = _complaint(detail, target, settings, last)
    return list(found.values())


def _complaint(detail: ErrorDetails, target: Target, settings: Settings, last: str) -> Problem:
    given = settings.under(target.path)
    if not given:
        return _missing(target, settings, last)
    value = given[0].value
    rule = _rule(detail, target.leaf)
    text = f"{dotted(target.path)} = {shown(value)} must be {rule}{_way_out(target.leaf, value)}"
    return Problem(given[0].place, text)


def _missing(target: Target, settings: Settings, last: str) -> Problem:
    section, name = target.path[:-1], target.path[-1]
    key = dotted(target.path)
    if section and isinstance(section[-1], int):
        row = settings.under(section)[0]
        return Problem(row.place, f"{key} is missing; add {name} under [[{dotted(section[:-1])}]]")
    where = f"add {name} under [{dotted(section)}]" if section else f"add {name} at the top of the run file"
    flags = f"--{key}" + (f" ({target.leaf.slime})" if target.leaf.slime else "")
    return Problem(
        Place(last, LAST), f"{key} is missing: {words(target.leaf.type)}; {where}, or give {flags}"
    )


def _rule(detail: ErrorDetails, leaf: Leaf) -> str:
    context: dict[str, Any] = detail.get("ctx", {})
    elements = "a list, each " if len(detail["loc"]) > 1 and isinstance(detail["loc"][-1], int) else ""
    if detail["type"] in BOUNDS:
        phrase, bound = BOUNDS[detail["type"]]
        return f"{elements}{phrase} {context[bound]:g}"
    match detail["type"]:
        case "finite_number":
            return f"{elements}a finite number"
        case "string_too_short":
            return f"{elements}text that is not empty"
        case "too_short":
            return "a list that is not empty"
        case "string_pattern_mismatch":
            return "letters, digits, '.', '_' and '-' only, the first a letter or digit"
    return words(leaf.type)


def _way_out(leaf: Leaf, value: Any) -> str:
    choices = words(leaf.type).split('"')[1::2]
    if len(choices) == 1:
        return "; nothing else is supported yet"
    if isinstance(value, str):
        meant = closest(value, choices)
        if meant:
            return f'; did you mean "{meant}"?'
        digits = value.lstrip("+-").replace(".", "", 1 if leaf.type is float else 0)
        if leaf.type in (int, float) and digits.isdecimal():
            return "; write it without quotes"
    if leaf.required or leaf.default is None:
        return ""
    return f"; the default is {write_value(leaf.default)}"
