"""docs/reference/metrics.md: every number of metrics.jsonl."""

from strop.reference.markdown import page, paragraph, table
from strop.telemetry.catalogue import catalogue
from strop.telemetry.declared import KINDS

INTRO = """
One object a step in `metrics.jsonl`, one an evaluation in `eval/results.jsonl` (names `eval/<name>/…` below,
without that beginning). Names are `station/noun[_unit]`. A metric is reduced once, over the whole step: no
average is ever averaged, and two ranks that share a step say what one would. A value that is not finite is
null.
"""


def render() -> str:
    """The page."""
    rows = (
        (
            f"`{m.name}`",
            m.unit,
            m.what,
            f"{m.numerator} / {m.denominator}" if m.denominator else m.numerator,
            m.reduction,
        )
        for m in catalogue()
    )
    return page(
        "Metrics",
        "strop/telemetry/catalogue.py",
        paragraph(INTRO),
        table(("name", "unit", "what it is", "numerator / denominator", "reduction"), rows),
        table(
            ("reduction", "what two ranks report is joined so"),
            ((name, how) for name, (_, how) in KINDS.items()),
        ),
    )
