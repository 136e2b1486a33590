"""docs/reference/slime-flags.md: every flag of slime's, and what strop does with it."""

from collections.abc import Iterator

from strop.config import slime
from strop.config.schema import leaves, slime_flags
from strop.config.slime_flags import ANSWERS, CAUTIONS, Answer
from strop.reference.config_page import leaf_name
from strop.reference.markdown import item, page, paragraph, table

INTRO = """
A launch line of slime's can be given to `strop train` as it is. Each of its flags sets a key, asks for what
strop does anyway, or is refused with one line that says what to do instead; none is abbreviated and none is
ignored.
"""
SETS = "Set a key, and answer to the key's dotted flag as well (`--lr` is `--train.optim.lr`)."
HOLDS = "Ask for what strop does: accepted with these values, refused with any other."
REFUSED = "Are refused, with this line after the flag's name; `*` stands for any ending."


def render() -> str:
    """The page."""
    holding = [answer for answer in ANSWERS if answer.holds]
    return page(
        "slime's flags",
        "strop/config/tree.py, slime.py and slime_flags.py",
        paragraph(INTRO),
        "## Flags that set something",
        paragraph(SETS),
        table(("flag", "key", "beware"), _by_flag(_setting())),
        "## Flags that change nothing",
        paragraph(HOLDS),
        table(("flag", "accepted", "otherwise"), _by_flag(_holding(holding))),
        "## Flags that strop has no counterpart for",
        paragraph(REFUSED),
        "\n".join(_refused(answer) for answer in ANSWERS if not answer.holds),
    )


def _by_flag(rows: Iterator[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    return sorted(rows, key=lambda row: row[0].strip("`"))


def _setting() -> Iterator[tuple[str, str, str]]:
    keys = {flag: leaf_name(path) for flag, path in slime_flags().items()}
    translated = {flag: _keys_of(flag) for flag in (*slime.EARLY, *slime.LATE)}
    for flag, key in {**translated, **keys}.items():
        yield f"`{flag}`", f"`{key}`" if key else "", CAUTIONS.get(flag, "")


def _keys_of(flag: str) -> str:
    """The keys whose help names the flag: those that it is translated to."""
    named = (path for path, leaf in leaves() if flag in leaf.help.replace(",", " ").replace(".", " ").split())
    return next((leaf_name(path) for path in named), "")


def _holding(answers: list[Answer]) -> Iterator[tuple[str, str, str]]:
    for answer in answers:
        values = ", ".join(f"`{value}`" if value else "no value" for value in answer.holds)
        for flag in answer.flags.split():
            yield f"`{flag}`", values, answer.text


def _refused(answer: Answer) -> str:
    return item(" ".join(f"`{flag}`" for flag in answer.flags.split()), answer.text)
