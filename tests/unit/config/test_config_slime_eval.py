"""slime's file of held-out sets: a set's own values, then `eval.defaults`, then the command line's."""

from pathlib import Path

import pytest
from cases import case

from strop.config.load import load_config
from strop.config.tree import EvalSet
from strop.errors import ConfigError

BASE = ["--hf-checkpoint", "tiny", "--num-rollout", "3", "--prompt-data", "/a"]
SETS = """eval:
  defaults:
    temperature: 0.6
    max_response_len: 64
    top_p: null
  datasets:
    - name: dev
      path: dev.jsonl
      temperature: 0.2
    - name: test
      path: /t.jsonl@[0:5]
      rm_type: math
      n_samples_per_eval_prompt: 4
      prompt_key: question
      stop: ["</answer>"]
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def sets(text: str, *flags: str) -> list[EvalSet]:
    Path("sets.yaml").write_text(text)
    return load_config([], [*BASE, "--eval-config", "sets.yaml", *flags]).config.eval.datasets


def test_a_set_says_more_than_the_defaults_and_these_more_than_flags() -> None:
    dev, test = sets(SETS, "--eval-temperature", "0.9", "--eval-top-p", "0.8", "--eval-max-response-len", "9")
    assert (dev.temperature, test.temperature) == (0.2, 0.6)
    assert (dev.max_response_tokens, test.max_response_tokens) == (64, 64)
    assert (dev.top_p, test.top_p) == (0.8, 0.8)


def test_every_key_becomes_strops() -> None:
    dev, test = sets(SETS)
    assert (dev.name, dev.files) == ("dev", [f"{Path.cwd()}/dev.jsonl"])
    assert (test.reward, test.samples_per_prompt, test.input_key) == ("math", 4, "question")
    assert (test.files, test.stop) == (["/t.jsonl@[0:5]"], ["</answer>"])


def test_sets_may_be_a_table_by_name() -> None:
    made = sets("eval:\n  datasets:\n    dev: {path: /d}\n    test: {path: /t}\n")
    assert [(s.name, s.files) for s in made] == [("dev", ["/d"]), ("test", ["/t"])]


WRONG = {
    SETS.replace("temperature: 0.6", "temperture: 0.6"): (
        "sets.yaml:3: eval.defaults.temperture is unknown; did you mean temperature?"
    ),
    SETS.replace(
        "rm_type", "rmtype"
    ): "sets.yaml:12: eval.datasets.1.rmtype is unknown; did you mean rm_type?",
    SETS.replace("      path: dev.jsonl\n", ""): (
        'sets.yaml:7: {name = "dev", temperature = 0.2} needs a name and a path'
    ),
    SETS.replace("top_p: null", "min_new_tokens: 3"): (
        "sets.yaml:5: min_new_tokens is not supported yet; remove it"
    ),
    "eval:\n  defaults: {}\n": (
        "sets.yaml:1: eval.datasets is missing or empty; list NAME and PATH of each set"
    ),
    "datasets: []\n": "sets.yaml:1: sets.yaml.datasets is unknown; the keys here are eval",
    "": "sets.yaml:1: sets.yaml must be a table, got null",
    "eval: [\n": "sets.yaml:2: not valid YAML: expected the node content, but found '<stream end>'",
}


def test_what_is_wrong_in_the_file_is_one_line() -> None:
    for text, line in WRONG.items():
        with case(text):
            with pytest.raises(ConfigError) as caught:
                sets(text)
            assert str(caught.value) == f"--eval-config: {line}"


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match=r"^--eval-config: none.yaml: cannot be read: No such file"):
        load_config([], [*BASE, "--eval-config", "none.yaml"])


def test_values_of_the_wrong_type_are_answered_as_in_a_run_file() -> None:
    with pytest.raises(ConfigError, match=r"^--eval-config: eval.datasets.0.temperature = "):
        sets(SETS.replace("0.2", "warm"))


def test_a_flag_of_a_row_adds_to_the_row_that_a_flag_made() -> None:
    flags = ["--model=tiny", "--loop.steps=5", "--prompts.files=/a"]
    config = load_config([], [*flags, "--eval-prompt-data", "dev", "/b", "--eval.datasets.0.n", "3"]).config
    assert (config.eval.datasets[0].name, config.eval.datasets[0].n) == ("dev", 3)
    with pytest.raises(ConfigError, match=r"name is set twice"):
        load_config([], [*flags, "--eval-prompt-data", "dev", "/b", "--eval.datasets.0.name", "other"])
    with pytest.raises(ConfigError, match=r"^--eval.datasets.0.n: eval.datasets has no number 0"):
        load_config([], [*flags, "--eval.datasets.0.n", "3", "--eval-prompt-data", "dev", "/b"])
