"""Curves as an SVG picture: a line a run with its name beside it, readable on a light page and on a dark one.

The picture brings its own ground and follows what the reader's system prefers, not the page around it: a page
cannot tell a picture which of the two it is.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from strop.telemetry.learning_curve import Point
from strop.telemetry.printable import one_line

LIGHT = {"ground": "#ffffff", "text": "#1f2328", "faint": "#59636e", "grid": "#d8dee4"}
DARK = {"ground": "#0d1117", "text": "#e6edf3", "faint": "#9198a1", "grid": "#30363d"}
LIGHT_HUES = ("#0b62a4", "#a44a00", "#00704f", "#a3307f", "#5b3fb5", "#6b6000", "#0a6b7c", "#b3202c")
DARK_HUES = ("#6cb6ff", "#f0a35e", "#56d4a0", "#f29bd4", "#b9a3ff", "#d8cf5a", "#5fd3e3", "#ff8f8a")
_DASHES = ("", "7 3", "2 3")
"""Every round of hues has its own, so that 24 lines differ."""

_WIDTH = 760.0
_HEIGHT = 320.0
"""At least; many names make it higher."""
_TOP, _BOTTOM, _LEFT = 16.0, 44.0, 52.0
_LEADER = 22.0
"""From the end of the plot to the names."""
_NAME_HEIGHT = 15.0
_LETTER = 7.7
"""Width of a letter: of a digit in DejaVu Sans, a wide font. Nothing measures it before a reader does."""
_NAME = 32
"""Letters of a name."""
_POINTS = 400
"""Of a line: more than the picture can show."""


@dataclass(frozen=True, slots=True)
class Line:
    """One curve."""

    name: str
    points: Sequence[Point]
    """At least one, in the order of steps."""


@dataclass(frozen=True, slots=True)
class Captions:
    """What is written along the axes."""

    x: str
    y: str


@dataclass(frozen=True, slots=True)
class _Scale:
    """From numbers to places along one axis."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def curves_svg(lines: Sequence[Line], captions: Captions, *, level: float | None = None) -> str:
    """The same lines give the same text. At `level`, if it is in the picture, is a dashed line across.

    `lines` are at least one; their order gives their colours.
    """
    names = [one_line(line.name, _NAME) for line in lines]
    right = _WIDTH - _LEADER - 8 - _LETTER * max(map(len, names))
    height = max(_HEIGHT, _TOP + _BOTTOM + _NAME_HEIGHT * len(lines))
    x = _Scale(0, max(line.points[-1].steps for line in lines), _LEFT, right)
    y = _Scale(*_range([point.value for line in lines for point in line.points]), height - _BOTTOM, _TOP)
    title = f"{captions.y} by {captions.x}: {', '.join(names)}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:g} {height:g}" role="img"'
        f" aria-label={quoteattr(title)}>",
        f"<style>{_style()}</style>",
        f'<rect class="ground" width="{_WIDTH:g}" height="{height:g}"/>',
        *_axes(x, y, captions),
        *_level(x, y, level),
        *(_line(line, index, x, y) for index, line in enumerate(lines)),
        *_names(lines, names, x, y),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def ticks(low: float, high: float, *, most: int, least_step: float = 0.0) -> list[float]:
    """Round numbers from `low` to `high`, both included where they are round: about `most` of them."""
    rough = max((high - low) / most, least_step)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(times * power for times in (1, 2, 5, 10) if times * power >= rough * (1 - 1e-9))
    numbers = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    return [round(number * step, 12) for number in numbers]


def spread(wanted: Sequence[float], *, gap: float, low: float, high: float) -> list[float]:
    """Places `gap` or more apart, from `low` to `high`, which must have room for them.

    They are nearest to the wanted ones by their squared distances; then those beyond an end are brought back.
    """
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    # Less the gaps before it, a place may be anywhere that is not before the last: isotonic regression, by
    # pooling neighbours that are out of order (Ayer et al. 1955).
    pools: list[tuple[float, int]] = []
    for rank, index in enumerate(order):
        mean, count = wanted[index] - rank * gap, 1
        while pools and pools[-1][0] > mean:
            before, n = pools.pop()
            mean, count = (mean * count + before * n) / (count + n), count + n
        pools.append((mean, count))
    starts = [mean for mean, count in pools for _ in range(count)]
    last = high - gap * (len(wanted) - 1)
    places = [0.0] * len(wanted)
    for rank, index in enumerate(order):
        places[index] = min(max(starts[rank], low), last) + rank * gap
    return places


def _range(values: Sequence[float]) -> tuple[float, float]:
    """Shares are shown from 0 to 1; other values as they are, with a little room."""
    low, high = min(values), max(values)
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    room = 0.05 * (high - low) or 1.0
    return low - room, high + room


def _style() -> str:
    dark = "".join(_colours(DARK, DARK_HUES))
    rules = [
        "text{font:12px system-ui,-apple-system,'Segoe UI',sans-serif}",
        ".line{fill:none;stroke-width:1.8;stroke-linejoin:round;stroke-linecap:round}",
        ".leader{fill:none;stroke-width:.8;opacity:.6}",
        ".grid,.level{stroke-width:1}.level{stroke-dasharray:4 4}",
        *_colours(LIGHT, LIGHT_HUES),
        f"@media(prefers-color-scheme:dark){{{dark}}}",
    ]
    return "".join(rules)


def _colours(theme: dict[str, str], hues: Sequence[str]) -> Iterator[str]:
    yield f".ground{{fill:{theme['ground']}}}.faint{{fill:{theme['faint']}}}"
    yield f".grid{{stroke:{theme['grid']}}}.level{{stroke:{theme['faint']}}}"
    for index, hue in enumerate(hues):
        yield f".s{index}{{stroke:{hue}}}.t{index}{{fill:{hue}}}"


def _axes(x: _Scale, y: _Scale, captions: Captions) -> Iterator[str]:
    for value in ticks(y.low, y.high, most=5):
        place = y(value)
        yield f'<path class="grid" d="M{x.start:.1f} {place:.1f}H{x.end:.1f}"/>'
        yield _text(x.start - 6, place + 4, f"{value:g}", "end")
    for value in ticks(x.low, x.high, most=8, least_step=1):
        yield _text(x(value), y.start + 18, f"{value:g}", "middle")
    yield _text((x.start + x.end) / 2, y.start + 36, captions.x, "middle")
    middle = (y.start + y.end) / 2
    turned = f' transform="rotate(-90 14 {middle:.1f})"'
    yield _text(14, middle, captions.y, "middle", turned)


def _level(x: _Scale, y: _Scale, level: float | None) -> Iterator[str]:
    if level is not None and y.low <= level <= y.high:
        yield f'<path class="level" d="M{x.start:.1f} {y(level):.1f}H{x.end:.1f}"/>'
        yield _text(x.start + 4, y(level) - 4, f"{level:g}", "start")


def _line(line: Line, index: int, x: _Scale, y: _Scale) -> str:
    places = " ".join(f"{x(point.steps):.1f} {y(point.value):.1f}" for point in _selection(line.points))
    # A line of one point has no length: drawn as a dot by its round ends.
    end = "l0 0" if len(line.points) == 1 else ""
    hue = index % len(LIGHT_HUES)
    return (
        f'<path class="line s{hue}"{_dash(index)} d="M{places}{end}">'
        f"<title>{escape(one_line(line.name, 200))}</title></path>"
    )


def _names(lines: Sequence[Line], names: Sequence[str], x: _Scale, y: _Scale) -> Iterator[str]:
    """Beside where the lines end, moved where they would lie on each other, with a thin line to each."""
    ends = [(x(line.points[-1].steps), y(line.points[-1].value)) for line in lines]
    places = spread([end for _, end in ends], gap=_NAME_HEIGHT, low=y.end, high=y.start)
    for index, ((end_x, end_y), place) in enumerate(zip(ends, places, strict=True)):
        hue = index % len(LIGHT_HUES)
        turn, label = x.end + 4, x.end + _LEADER
        yield (
            f'<path class="leader s{hue}"{_dash(index)} d="M{end_x + 2:.1f} {end_y:.1f}'
            f'H{turn:.1f}L{label - 4:.1f} {place:.1f}"/>'
        )
        yield f'<text class="t{hue}" x="{label:.1f}" y="{place + 4:.1f}">{escape(names[index])}</text>'


def _dash(index: int) -> str:
    dash = _DASHES[index // len(LIGHT_HUES) % len(_DASHES)]
    return f' stroke-dasharray="{dash}"' if dash else ""


def _selection(points: Sequence[Point]) -> Sequence[Point]:
    """Evenly over the whole, its ends included."""
    if len(points) <= _POINTS:
        return points
    return [points[index * (len(points) - 1) // (_POINTS - 1)] for index in range(_POINTS)]


def _text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    return f'<text class="faint" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(text)}</text>'
