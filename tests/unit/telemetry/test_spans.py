import json

import pytest

from strop.telemetry.spans import Spans


def ticking():
    times = iter(range(100))
    return lambda: float(next(times))


def test_the_split_adds_up_spans_of_one_name_since_the_last_split():
    spans = Spans(ticking())
    for name in ("rollout", "train", "train"):
        with spans.span(name):
            pass
    assert spans.split() == {"rollout": 1.0, "train": 2.0}
    assert spans.split() == {}


def test_a_span_that_raises_is_recorded():
    spans = Spans(ticking())
    with pytest.raises(KeyError), spans.span("train"):
        raise KeyError
    assert spans.split() == {"train": 1.0}


def test_the_trace_is_for_chrome(tmp_path):
    spans = Spans(ticking())
    with spans.span("step"), spans.span("train", track="trainer"):
        pass
    spans.write(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [event["args"]["name"] for event in events if event["ph"] == "M"] == ["part 1", "trainer", "loop"]
    inner, outer = (event for event in events if event["ph"] == "X")
    assert (inner["name"], inner["ts"], inner["dur"]) == ("train", 1e6, 1e6)
    assert (outer["name"], outer["ts"], outer["dur"]) == ("step", 0.0, 3e6)
    assert inner["tid"] != outer["tid"]


def test_a_resumed_run_keeps_the_trace_of_the_part_before(tmp_path):
    for name in ("before", "after"):
        spans = Spans(ticking())
        with spans.span(name):
            pass
        spans.write(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [(event["name"], event["pid"]) for event in events if event["ph"] == "X"] == [
        ("before", 0),
        ("after", 1),
    ]
