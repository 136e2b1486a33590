"""docs/reference/run-directory.md: the files of a run, and what is in them."""

import inspect
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from strop.reference.declared import fields, methods
from strop.reference.markdown import code, page, paragraph, prose, table
from strop.sample import Sample
from strop.store import checkpoints, jsonl, layout, ledger, samples
from strop.store.reader import RunReader
from strop.tokens import Tokens

INTRO = """
A run is a directory: whoever wants to know something about a run reads its files, while it is live, after it
ended or after it was killed. Nothing in it is pickled, every file carries a format version or is named in one
that does, and files appear whole or not at all; the logs grow line by line.
"""
READER = "From Python, `RunReader` of `strop/store/reader.py` reads all of it:"
MEANINGS = {
    "ids": "Token ids, prompt and response, exactly as the engine had them.",
    "sampled": "Whether the policy made the token.",
    "mask": "Whether it is trained; only what was sampled can be.",
    "behavior": "Log-prob under the distribution that it was drawn from; null where not sampled.",
    "versions": "Version of the weights that drew it; −1 where not sampled.",
    "advantage": "One number a response token.",
    "prompt": "JSON: the messages, or the text.",
    "label": "JSON.",
    "reward": "Null when there is none: a failure is not a reward of 0.",
    "scores": "JSON: named parts of the reward.",
    "metadata": "JSON.",
    "sampling": "JSON: how the tokens were drawn.",
    "status": "How it stands: completed, truncated, aborted or failed.",
    "spec_info": "JSON: counters of speculative decoding.",
}
"""Of columns whose field has no help of its own."""
EXAMPLE = """
from pathlib import Path
from strop.store.reader import RunReader

run = RunReader(Path("runs/latest"))
print([record["reward/mean"] for record in run.metrics()])
"""


def render() -> str:
    """The page."""
    return page(
        "The run directory",
        "strop/store",
        paragraph(INTRO),
        table(("path", "what is in it"), _files()),
        "## Logs",
        prose(_after_first(jsonl)),
        "The metrics are in [metrics.md](metrics.md). An object of `ledger.jsonl`:",
        _fields_table(ledger.Entry),
        f"`event` is one of {', '.join(f'`{event}`' for event in ledger.Event)}.",
        "## Samples",
        prose(inspect.getdoc(samples) or ""),
        table(("column", "type", "meaning"), _columns()),
        "## Checkpoints",
        prose(inspect.getdoc(checkpoints) or ""),
        _fields_table(checkpoints.Checkpoint),
        "## Reading it",
        paragraph(READER),
        code(EXAMPLE, "python"),
        table(("call", "what it gives"), _calls()),
    )


def _files() -> Iterator[tuple[str, str]]:
    logs = [constant for constant in fields(layout) if constant.text.endswith((".json'", ".jsonl'"))]
    for constant in logs:
        yield f"`{constant.text.split(chr(39))[1]}`", _line(constant.doc)
    paths = {
        layout.samples_path: layout.samples_path(Path(), 0),
        layout.greedy_path: layout.greedy_path(Path(), 0),
        layout.eval_path: layout.eval_path(Path(), "NAME", 0),
        layout.checkpoint_path: layout.checkpoint_path(Path(), 0),
    }
    for function, path in paths.items():
        text = path.as_posix().replace("step-0", "step-N")
        yield f"`{text}`", _line(inspect.getdoc(function) or "").replace("`step`", "`N`")


def _columns() -> Iterator[tuple[str, str, str]]:
    meanings = {field.name: _line(field.doc) for of in (Sample, Tokens) for field in fields(of)}
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "none.parquet"
        samples.write_samples(file, [])
        for column in pq.read_schema(file):
            meaning = meanings.get(column.name) or MEANINGS.get(column.name, "")
            yield f"`{column.name}`", _type(str(column.type)), meaning


def _type(name: str) -> str:
    """`list<element: int32>` as "list of int32"."""
    inner = name.removeprefix("list<element: ").removesuffix(">")
    if inner == name:
        return name
    return f"list of {inner.split('<')[0]}"


def _calls() -> Iterator[tuple[str, str]]:
    return ((f"`{method.text}`", _line(method.doc)) for method in methods(RunReader))


def _fields_table(of: type[Any]) -> str:
    return table(("field", "meaning"), ((f"`{field.text}`", _line(field.doc)) for field in fields(of)))


def _after_first(module: Any) -> str:
    return (inspect.getdoc(module) or "").partition("\n\n")[2]


def _line(doc: str) -> str:
    return " ".join(doc.split())
