"""docs/reference/metrics.md: every number of metrics.jsonl."""

from strop.reference.markdown import page, paragraph, table
from strop.telemetry.groups import MEANINGS

INTRO = """
One object a step in `metrics.jsonl`. Names are `station/noun[_unit]`. A mean knows its numerator and
denominator and is divided once, over the whole step: no average is ever averaged. A value that is not
finite is null.
"""


def render() -> str:
    """The page."""
    return page(
        "Metrics",
        "strop/telemetry",
        paragraph(INTRO),
        table(("name", "meaning"), ((f"`{name}`", meaning) for name, meaning in MEANINGS.items())),
    )
