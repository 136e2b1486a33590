"""Numbers in text: found, read and compared exactly; never evaluated."""

import math
import re
from decimal import Decimal

# Plain numbers, with thousands only in groups of three. The sign counts unless it joins two words or numbers.
_DIGITS = r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|(?<!\w)\.[0-9]+"
NUMBER = re.compile(rf"(?:(?<![\w.])[-−])?(?:{_DIGITS})", re.ASCII)


def read_number(text: str) -> Decimal:
    """The value of what `NUMBER` matched."""
    return Decimal(text.replace(",", "").replace("−", "-"))


def number_of(label: object) -> Decimal:
    """A label as a number. Raises ValueError."""
    if isinstance(label, str) and NUMBER.fullmatch(label.strip()):
        return read_number(label.strip())
    if isinstance(label, int | float) and not isinstance(label, bool) and math.isfinite(label):
        return Decimal(str(label))
    raise ValueError(f"label {label!r} is not a number")
