"""`prompts.template` puts a row's text into a text of the run's."""

import json

import pytest

from strop.config.flags import split_arguments
from strop.config.load import load_config
from strop.config.tree import Prompts
from strop.errors import ConfigError, DataError
from strop.prompts.open import open_prompts


def written(tmp_path, *rows):
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(json.dumps({"prompt": row}) for row in rows))
    return [str(file)]


def test_the_template_surrounds_every_row_and_reads_no_braces_of_the_row(tmp_path):
    section = Prompts(files=written(tmp_path, "2 + 2 = {x}"), template="Q: {prompt}\nA ({y}):", shuffle=False)
    assert open_prompts(section).source.next(1)[0].messages == "Q: 2 + 2 = {x}\nA ({y}):"


def test_chat_messages_have_no_place_in_a_template(tmp_path):
    section = Prompts(files=written(tmp_path, [{"role": "user", "content": "hi"}]), template="Q: {prompt}")
    with pytest.raises(
        DataError, match=r"rows.jsonl:1: 'prompt' holds chat messages, which prompts.template"
    ):
        open_prompts(section)


def test_a_template_without_a_place_is_refused(tmp_path):
    files, flags = split_arguments(["--model", "tiny", "--num-rollout", "1", "--prompt-data", "a.jsonl"])
    with pytest.raises(ConfigError) as caught:
        load_config(files, [*flags, *split_arguments(["--prompts.template", "Question:"])[1]])
    assert str(caught.value) == (
        '--prompts.template: prompts.template = "Question:" (--prompts.template) has no {prompt}, where the '
        "text of a row goes; add it"
    )
