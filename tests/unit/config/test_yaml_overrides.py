"""A second run file, in YAML, is validated with everything else, and not put over what was."""

import pytest
from cases import case

from strop.config.load import load_config
from strop.errors import ConfigError

RUN = 'model = "tiny"\nloop.steps = 1\nprompts.files = ["a.jsonl"]\ntrain.batch_size = 64\n'


@pytest.fixture
def load(tmp_path):
    def loaded(yaml):
        (tmp_path / "run.toml").write_text(RUN)
        (tmp_path / "more.yaml").write_text(yaml)
        return load_config([tmp_path / "run.toml", tmp_path / "more.yaml"]).config

    return loaded


def test_what_yaml_overrides_is_validated_too(load):
    cases = [
        (
            "rollout: {batch_size: 3}",
            r"rollout.batch_size = 3 \(.*more.yaml:1\) .* but train.batch_size = 64",
        ),
        ("rollout: {batch_sise: 8}", r"more.yaml:1: .*batch_sise.* did you mean"),
        ("rollout: {temperature: -1}", "more.yaml:1: rollout.temperature = -1.* must be more than 0"),
        ("rollout: {temperature: hot}", "more.yaml:1: rollout.temperature = .* must be a number"),
    ]
    for yaml, message in cases:
        with case(yaml), pytest.raises(ConfigError, match=message):
            load(yaml)


def test_what_follows_from_a_value_follows_from_the_one_in_yaml(load):
    config = load("rollout: {batch_size: 4}\ntrain: {batch_size: null, updates_per_step: 2}")
    assert config.train.batch_size == 16
