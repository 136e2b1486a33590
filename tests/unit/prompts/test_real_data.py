"""Rows as GSM8K and HumanEval have them, where they are on this machine (STROP_DATA)."""

import os
from pathlib import Path

import pytest

from strop.config.tree import EvalSet, Prompts
from strop.prompts.open import open_eval_set, open_prompts

DATA = Path(os.environ.get("STROP_DATA") or "/nowhere")
HUMANEVAL, GSM8K = DATA / "humaneval/HumanEval.jsonl.gz", DATA / "gsm8k/train.jsonl"
needs_data = pytest.mark.skipif(not HUMANEVAL.is_file(), reason="STROP_DATA names no folder with the data")


@needs_data
def test_humaneval_is_read_as_it_is_with_its_tests_in_the_metadata():
    section = Prompts(metadata_fields=["task_id", "entry_point", "test"], label_key="canonical_solution")
    prompts = open_eval_set(EvalSet(name="humaneval", files=[str(HUMANEVAL)]), section)
    assert len(prompts) == 164
    first = prompts[0]
    assert (first.id, first.metadata["task_id"]) == ("HumanEval.jsonl.gz:1", "HumanEval/0")
    assert first.messages.startswith("from typing import List")
    assert first.metadata["entry_point"] == "has_close_elements"
    assert "assert candidate(" in first.metadata["test"]
    assert first.label.startswith("    for idx, elem in enumerate(numbers):")


@needs_data
def test_gsm8k_is_read_as_it_is_and_every_row_comes_once_an_epoch():
    source = open_prompts(Prompts(files=[str(GSM8K)], input_key="question", label_key="answer")).source
    assert len(source) == 7473
    assert len({prompt.id for prompt in source.next(7473)}) == 7473
