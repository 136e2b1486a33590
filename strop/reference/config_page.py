"""docs/reference/config.md: every key of a run file."""

import inspect
from collections.abc import Iterator

from strop.config.keys import Section
from strop.config.presets import PRESETS
from strop.config.schema import KeyPath, Leaf, children, words
from strop.config.slime_flags import CAUTIONS
from strop.config.toml_text import dotted, write_value
from strop.config.tree import Config
from strop.reference.markdown import item, page, paragraph, table

INTRO = """
A run file is TOML or YAML. Later files win over earlier ones, flags over files: `strop train run.toml
more.toml --train.optim.lr 1e-5`. Every key answers to its dotted flag, many to slime's flat one too, which
is given beside the key. Tables of your own keys (`reward.options`) merge key by key; `[]` and `{}` clear.
"""
PATHS = """
A path is relative to the run file that names it, on the command line to the working directory. A function
is `file.py:name`, `package.module:name`, a built-in name or an entry point.
"""
ASK = """
`strop config run.toml` prints every key with its value and where the value comes from; an unknown key, a
wrong type or a value out of bounds is one line and exit code 2, before anything is loaded. A key that does
nothing beside another one that was given is refused too.
"""
RECIPES = """
`algo.type` sets these keys, where no file or flag does; all others stay at their defaults. Each name leads to
a page with its equation.
"""


def render() -> str:
    """The page."""
    return page(
        "Configuration",
        "strop/config/tree.py",
        *(paragraph(text) for text in (INTRO, PATHS, ASK)),
        *_section(Config, (), is_row=False),
        "## Recipes",
        paragraph(RECIPES),
        table(("`algo.type`", "defaults"), _recipes()),
    )


def _recipes() -> Iterator[tuple[str, str]]:
    for name, preset in PRESETS.items():
        yield (
            f"[`{name}`](../explanation/algorithms/{name}.md)",
            " · ".join(f"`{key} = {write_value(value)}`" for key, value in preset.items()),
        )


def _section(section: type[Section], path: KeyPath, *, is_row: bool) -> Iterator[str]:
    """A heading, the keys, then the sections and rows in it."""
    name = dotted([part for part in path if isinstance(part, str)])
    if path:
        yield f"## [[{name}]]" if is_row else f"## [{name}]"
    else:
        yield "## The top of the file"
    yield paragraph(inspect.getdoc(section) or "")
    entries, inner = [], []
    for key, child in children(section).items():
        here = (*path, key)
        if not isinstance(child, Leaf):
            inner.append((here, child, False))
            continue
        entries.append(_entry(here, child))
        if child.rows:
            inner.append((here, child.rows, True))
    if entries:
        yield "\n".join(entries)
    for here, below, row in inner:
        yield from _section(below, here, is_row=row)


def _entry(path: KeyPath, leaf: Leaf) -> str:
    parts = [_with_default(f"**`{leaf_name(path)}`**", leaf), " ".join([words(leaf.type), *leaf.bounds])]
    if leaf.slime:
        parts.append(f"slime's `{leaf.slime}`")
    caution = f"Beware: {CAUTIONS[leaf.slime]}." if leaf.slime in CAUTIONS else ""
    return item(" · ".join(parts), " ".join(filter(None, [leaf.help, caution])))


def _with_default(name: str, leaf: Leaf) -> str:
    if leaf.required:
        return f"{name} · required"
    return f"{name} · unset" if leaf.default is None else f"{name} = `{write_value(leaf.default)}`"


def leaf_name(path: KeyPath) -> str:
    """`rollout.batch_size`; rows of a list of tables without their number."""
    return dotted([part for part in path if isinstance(part, str)])
