"""The picture is checked as a reader's program would see it: parsed, not as text."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from strop.telemetry.curves_svg import (
    DARK,
    DARK_HUES,
    LIGHT,
    LIGHT_HUES,
    Captions,
    Line,
    curves_svg,
    spread,
    ticks,
)
from strop.telemetry.learning_curve import Point

SVG = "{http://www.w3.org/2000/svg}"


def picture(*lines, level=None):
    named = [Line(name, [Point(*point) for point in points]) for name, points in lines]
    return ElementTree.fromstring(curves_svg(named, Captions("steps", "reward"), level=level))


def drawn(root):
    return [path for path in root.iter(f"{SVG}path") if path.get("class").startswith("line")]


def places(path):
    numbers = [float(number) for number in re.findall(r"-?[\d.]+", path.get("d"))]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def labels(root):
    return [text for text in root.iter(f"{SVG}text") if text.get("class") != "faint"]


def scale_texts(root):
    return [text.text for text in root.iter(f"{SVG}text") if text.get("class") == "faint"]


def luminance(colour):
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a, b):
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize(("theme", "hues"), [(LIGHT, LIGHT_HUES), (DARK, DARK_HUES)])
def test_names_can_be_read_on_a_light_and_on_a_dark_ground(theme, hues):
    """4.5 is what WCAG 2.2 asks of text (criterion 1.4.3)."""
    for colour in (*hues, theme["text"], theme["faint"]):
        assert contrast(colour, theme["ground"]) >= 4.5, colour


def test_a_line_goes_from_its_first_step_to_its_last_and_upwards_as_the_value_rises():
    (path,) = drawn(picture(("a", [(1, 0.0), (5, 0.5), (10, 1.0)])))
    (x0, y0), (x1, y1), (x2, y2) = places(path)
    assert (x2 - x0) / (x1 - x0) == pytest.approx(9 / 4, abs=0.01)
    assert y0 - y1 == pytest.approx(y1 - y2, abs=0.11)
    assert y0 > y2


def test_every_line_has_its_name_beside_it_in_its_own_colour():
    root = picture(("a", [(1, 0.1), (2, 0.2)]), ("b", [(1, 0.9), (2, 0.8)]))
    assert [(label.text, label.get("class")) for label in labels(root)] == [("a", "t0"), ("b", "t1")]
    assert [path.get("class") for path in drawn(root)] == ["line s0", "line s1"]
    assert float(labels(root)[1].get("y")) < float(labels(root)[0].get("y"))


def test_names_of_lines_that_end_together_do_not_lie_on_each_other():
    root = picture(*((f"run {i}", [(1, 0.0), (9, 1.0)]) for i in range(40)))
    rows = sorted(float(label.get("y")) for label in labels(root))
    assert min(low - high for high, low in pairwise(rows)) >= 14.9
    assert rows[0] > 0
    assert rows[-1] < float(root.get("viewBox").split()[3])


def test_the_name_of_a_run_directory_ends_within_the_picture():
    name = "numbers-20261130-121530"  # 168 units in DejaVu Sans at 12
    root = picture((name, [(1, 0.1)]))
    assert float(labels(root)[0].get("x")) + 168 < float(root.get("viewBox").split()[2])


def test_lines_of_one_colour_differ_in_their_dashes():
    root = picture(*((f"run {i}", [(1, 0.0), (9, 1.0)]) for i in range(24)))
    looks = {(path.get("class"), path.get("stroke-dasharray")) for path in drawn(root)}
    assert len(looks) == 24


@pytest.mark.parametrize(("values", "shown"), [((0.2, 0.9), True), ((-20.0, -5.0), False)])
def test_the_level_is_drawn_where_the_picture_has_it(values, shown):
    root = picture(("a", list(enumerate(values, 1))), level=0.85)
    assert ("0.85" in scale_texts(root)) == shown


def test_a_run_of_one_step_is_a_dot_and_one_without_change_is_in_the_middle():
    one, flat = drawn(picture(("one", [(1, 5.0)]), ("flat", [(1, 5.0), (2, 5.0)])))
    assert places(one)[0][1] == places(flat)[1][1]
    assert one.get("d").endswith("l0 0")


def test_a_name_of_markup_and_control_characters_is_text():
    root = picture(('<script>"&\x1b[31m', [(1, 0.5)]))
    assert labels(root)[0].text == '<script>"&␛[31m'


def test_a_long_run_is_a_small_picture_with_its_ends():
    text = curves_svg([Line("a", [Point(i + 1, i % 2) for i in range(100_000)])], Captions("steps", "reward"))
    assert len(text) < 20_000
    (path,) = drawn(ElementTree.fromstring(text))
    assert len(places(path)) == 400
    assert "100000" in scale_texts(ElementTree.fromstring(text))


def test_ticks_are_round_numbers():
    cases = [
        (0, 1, 0, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0, 3, 1, [0, 1, 2, 3]),
        (0, 75, 1, [0, 20, 40, 60]),
        (-0.3, 0.7, 0, [-0.2, 0, 0.2, 0.4, 0.6]),
    ]
    for low, high, least_step, expected in cases:
        assert ticks(low, high, most=5, least_step=least_step) == expected, (low, high, least_step)


def test_places_are_moved_only_as_far_as_they_must():
    assert spread([50, 10, 12], gap=10, low=0, high=100) == [50, 6, 16]
    assert spread([3, 1, 2], gap=10, low=0, high=100) == [20, 0, 10]
    assert spread([99, 98], gap=10, low=0, high=100) == [100, 90]
