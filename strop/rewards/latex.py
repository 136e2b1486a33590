"""Mathematical answers as text: the boxed part of a response, and one spelling for what means the same."""

import re
from collections.abc import Callable

_GROUP = re.compile(r"\\.|[{}]", re.DOTALL)

SPELLINGS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\\[!,;:]|\\ |~|\n", ""),  # spaces of LaTeX
        (r"\\left(?![a-zA-Z])|\\right(?![a-zA-Z])", ""),
        (r"\\[tdc]frac(?![a-zA-Z])", r"\\frac"),
        (r"\^\s*(?:\{\s*\\circ\s*\}|\\circ(?![a-zA-Z]))", ""),  # degrees
        (r"\\?[$%]", ""),
        (r"\{,\}", ","),
        (r"\\(?:text|mbox|mathrm)\s*\{\s+[^{}]*\}\s*$", ""),  # a unit, set off by a space
        (r"^\s*\\(?:text|mbox|mathrm|textbf|mathbf)\s*\{([^{}]*)\}\s*$", r"\1"),  # nothing but words
        (r"^\s*[a-zA-Z]\s*=(?!=)", ""),  # x = …
        (r"^\s*([+-]?\d+)\s+(\d+)/(\d+)\s*$", r"\1\\frac{\2}{\3}"),  # a whole number and a fraction
        (r"(?<!\d)\s+|\s+(?!\d)", ""),
        (r"\.$", ""),
        (r"(?<![\d.])\.(?=\d)", "0."),
        (r"(?<![\d,(\[{])(\d{1,3}(?:,\d{3})+)(?![\d,)\]}])", lambda found: found[1].replace(",", "")),
        (r"\\sqrt(?![a-zA-Z])([^\[{])", r"\\sqrt{\1}"),
        (r"\\frac(?![a-zA-Z])([^{\\])([^{\\])", r"\\frac{\1}{\2}"),
        (r"\\frac(?![a-zA-Z])([^{\\])\{", r"\\frac{\1}{"),
        (r"(\\frac\{[^{}]*\})([^{\\])", r"\1{\2}"),
        (r"^([+-]?)0\.50*$", r"\1\\frac{1}{2}"),
        (r"^([+-]?\d+)/(\d+)$", r"\\frac{\1}{\2}"),
        (r"^\+(?=\d)", ""),
    )
)
"""What is replaced by what, in this order; only spellings, never values, but for 0.5, which the sets of
problems with such labels write as a fraction."""


def last_boxed(text: str) -> str | None:
    r"""What the last `\boxed{…}` of a text holds, or its last `\fbox{…}` if it has none of those; None when
    there is neither, or its brace is not closed.

    >>> last_boxed(r"first \boxed{1}, then \boxed{\frac{1}{2}}.")
    '\\frac{1}{2}'
    """
    at = max(text.rfind(r"\boxed{"), text.rfind(r"\boxed {"))
    if at < 0:
        at = max(text.rfind(r"\fbox{"), text.rfind(r"\fbox {"))
    if at < 0:
        return None
    begin = text.index("{", at) + 1
    depth = 1
    for found in _GROUP.finditer(text, begin):
        depth += {"{": 1, "}": -1}.get(found.group(), 0)
        if depth == 0:
            return text[begin : found.start()]
    return None


def normal(answer: str) -> str:
    r"""The one spelling of an answer.

    >>> normal(r"\dfrac12"), normal("0.5"), normal("3/4"), normal(r"x = 45^\circ"), normal(" 1{,}234. ")
    ('\\frac{1}{2}', '\\frac{1}{2}', '\\frac{3}{4}', '45', '1234')
    """
    for pattern, replacement in SPELLINGS:
        answer = pattern.sub(replacement, answer)
    return answer
