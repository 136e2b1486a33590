"""Grade-school problems (GSM8K, arXiv:2110.14168): solutions that end in `#### 42`."""

from decimal import Decimal

from strop.rewards.numbers import NUMBER, number_of, read_number
from strop.sample import Prompt, Sample

_MARK = "####"
_READ = 20_000


def gsm8k(sample: Sample) -> float:
    """1 if the response's last number, or the one after its last `####`, is the label's.

    The label is a number, or a solution with its number after `####`. Commas may group thousands; currency
    and per cent signs do not count. Only the last 20,000 characters are read.

    >>> gsm8k(Sample(index=0, group_id=0, response="so $1,200.", label="6 * 200 = 1200\\n#### 1,200"))
    1.0
    """
    expected = _labelled(sample.label)
    return float(_answered(sample.response[-_READ:]) == expected)


def check_label(prompt: Prompt) -> None:
    """Raises ValueError unless the label is a number or ends in one after `####`."""
    _labelled(prompt.label)


def _labelled(label: object) -> Decimal:
    if isinstance(label, str) and _MARK in label:
        stated = label.rpartition(_MARK)[2].strip().strip("$%. ")
        if NUMBER.fullmatch(stated):
            return read_number(stated)
        raise ValueError(f"label ends in {_MARK + ' ' + stated!r}, which is not a number")
    return number_of(label)


def _answered(response: str) -> Decimal | None:
    _, mark, stated = response.rpartition(_MARK)
    if mark and (first := NUMBER.search(stated)):
        return read_number(first.group())
    numbers = NUMBER.findall(response)
    return read_number(numbers[-1]) if numbers else None
