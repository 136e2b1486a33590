import json
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from some_samples import assert_same, groups, prompts, samples, tokens

from strop.errors import DataError, RunError
from strop.sample import Group, Prompt, Sample, Tokens
from strop.store.json_text import encode, encode_exact
from strop.store.records import (
    group_from_json,
    group_to_json,
    prompt_from_json,
    prompt_to_json,
    sample_from_json,
    sample_to_json,
    tokens_from_json,
    tokens_to_json,
)


def through_text(record):
    return json.loads(encode_exact(record, "test"))


@given(tokens())
@settings(max_examples=12, deadline=None)
def test_tokens_survive_json(before):
    assert tokens_from_json(through_text(tokens_to_json(before))) == before


@given(prompts)
@settings(max_examples=15, deadline=None)
def test_a_prompt_survives_json(before):
    assert prompt_from_json(through_text(prompt_to_json(before))) == before


@given(samples())
@settings(max_examples=12, deadline=None)
def test_a_sample_survives_json(before):
    assert_same(before, sample_from_json(through_text(sample_to_json(before))))


@given(groups)
@settings(max_examples=20, deadline=None)
def test_a_group_survives_json(before):
    after = group_from_json(through_text(group_to_json(before)))
    assert (after.id, after.prompt, after.tries) == (before.id, before.prompt, before.tries)
    for a, b in zip(before.samples, after.samples, strict=True):
        assert_same(a, b)


def test_behavior_of_a_token_that_was_not_sampled_is_null():
    sequence = Tokens.context([5]) + Tokens.drawn([6], [-0.5], [0])
    assert tokens_to_json(sequence)["behavior"] == [None, -0.5]


@pytest.mark.parametrize(
    ("kind", "write", "value"),
    [
        (Prompt, prompt_to_json, Prompt(id="p", messages="hello")),
        (Sample, sample_to_json, Sample(index=0, group_id=0)),
        (Group, group_to_json, Group(0, Prompt(id="p", messages="hello"), [])),
    ],
)
def test_every_field_is_in_the_record(kind, write, value):
    assert set(write(value)) == {field.name for field in fields(kind)} | {"format"}


def test_a_record_of_another_format_is_refused():
    record = {**sample_to_json(Sample(index=0, group_id=0)), "format": 2}
    with pytest.raises(DataError) as error:
        sample_from_json(record)
    assert str(error.value) == (
        "sample: format 2 is not known, expected 1; read it with the strop that wrote it"
    )


def test_what_json_cannot_hold_is_refused_by_name():
    with pytest.raises(RunError) as error:
        encode_exact({"x": float("inf")}, "sample 3: metadata")
    assert str(error.value).startswith("sample 3: metadata: cannot be stored as JSON (Out of range float")


def test_numbers_that_json_lacks_become_null_in_logs():
    record = {"a": float("nan"), "b": np.float32("inf"), "c": np.float64(0.1), "d": np.int64(3)}
    assert encode(record) == b'{"a":null,"b":null,"c":0.1,"d":3}'
