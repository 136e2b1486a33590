"""The reward of DAPO (arXiv:2503.14476): the answer on the last line `Answer: …`, worth 1 or −1."""

import math
import re
from dataclasses import dataclass

from strop.rewards.latex import last_boxed
from strop.sample import Prompt, Sample, Scores

_READ = 300
"""Characters at the end of a response: whoever has not said the answer by then has not."""
_BOXED_READ = 100
_ANSWER = re.compile(r"answer\s*:\s*([^\n]+)", re.IGNORECASE)
_END_TOKENS = re.compile(r"(?:\s*(?:<\|im_end\|>|<\|endoftext\|>|<\|eot_id\|>|</s>))+\s*$")
# Words that go with an answer without being part of it, after Minerva (arXiv:2206.14858, appendix D.1).
_UNITS = (
    "square|ways|integers|dollars|mph|inches|hours|km|units|sue|points|feet|minutes|digits|cents|degrees|cm|gm|"
    "pounds|meters|meals|edges|students|childrentickets|multiples"
)
_NOISE = re.compile(
    r"\b(?:an|a) |\\(?:text|mbox|mathrm)\{(?:s|\.|th|m)?\}(?:\^[23])?|\^\\circ|\^\{\\circ\}|\\l?dots|\\[;,!]"
    r"|\\ |\\?\$|\{,\}|\"|\.$|\s|" + _UNITS
)
_AND = re.compile(r",?\s*\\text\s*\{\s*and\s*\}")
_WRAPPED = re.compile(r"\\(?:text|textbf|mbox|overline|boxed)\{([^{}]*)\}")
_FRACTION = re.compile(r"\\frac([^{\\])([^{\\])")
_ROOT = re.compile(r"\\sqrt([^{\[\\])")
_GROUPED = re.compile(r"[0-9,]+")


@dataclass(frozen=True, slots=True)
class Verdict:
    """slime's table of the same names."""

    score: float
    acc: bool
    pred: str


@dataclass(frozen=True)
class Dapo:
    r"""1 if the answer after the last `Answer:` is the label, a whole number, else −1.

    Only the last 300 characters count. `strict_box`: the answer is the last `\boxed{…}` instead, within the
    last 100. Scores: `score`, and `acc`, which is 1 or 0.
    """

    strict_box: bool = False

    def __call__(self, sample: Sample) -> Scores:
        """Of one finished sample."""
        verdict = judge(sample.response, _whole(sample.label), strict_box=self.strict_box)
        return Scores(verdict.score, {"score": verdict.score, "acc": float(verdict.acc)})


def judge(response: str, label: str, *, strict_box: bool = False) -> Verdict:
    """What the response says and whether that is the label."""
    end = _END_TOKENS.sub("", response)[-_READ:]
    said = last_boxed(end[-_BOXED_READ:]) if strict_box else _last_answer(end)
    pred = "" if said is None else said if strict_box else normal_answer(said)
    is_right = said is not None and pred == (label if strict_box else normal_answer(label))
    return Verdict(1.0 if is_right else -1.0, is_right, pred)


def normal_answer(text: str) -> str:
    """An answer without units and spaces, thousands without commas; of an equation, the right side.

    >>> normal_answer("1,234,567"), normal_answer("x = 100 dollars"), normal_answer("$42$.")
    ('1234567', '100', '42')
    """
    text = _END_TOKENS.sub("", text).split("=")[-1].strip()
    inside = re.search(r"\$([^$]+)\$", text)
    text = _WRAPPED.sub(r"\1", _NOISE.sub("", _AND.sub(",", inside[1] if inside else text)))
    text = _ROOT.sub(r"\\sqrt{\1}", _FRACTION.sub(r"\\frac{\1}{\2}", text))
    return text.replace(",", "") if _GROUPED.fullmatch(text) else text


def check_label(prompt: Prompt) -> None:
    """Raises ValueError unless the label is a whole number."""
    _whole(prompt.label)


def _last_answer(text: str) -> str | None:
    said = _ANSWER.findall(text)
    return said[-1] if said else None


def _whole(label: object) -> str:
    """`42` of 42, 42.0 and "42.0"."""
    if isinstance(label, str | int | float) and not isinstance(label, bool):
        try:
            value = float(label)
            if math.isfinite(value) and value == int(value):
                return str(int(label) if isinstance(label, int) else int(value))
        except ValueError:
            pass  # told below, like any other label
    raise ValueError(f"label {label!r} is not a whole number")
