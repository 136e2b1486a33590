"""The `env` section becomes a factory, or one line that says what is wrong."""

import pytest
from cases import case

from strop.config.tree import Env
from strop.envs.calculator import Calculator
from strop.envs.open import open_env
from strop.envs.single_turn import SingleTurn
from strop.errors import PluginError

METHODS = "    async def start(self, prompt): ...\n    async def step(self, reply): ...\n"


@pytest.mark.parametrize(("name", "made"), [("single_turn", SingleTurn), ("calculator", Calculator)])
def test_built_ins_are_made_anew_for_each_sample(name, made):
    factory = open_env(Env(type=name))
    one, two = factory(), factory()
    assert type(one) is type(two) is made
    assert one is not two


def test_a_wrong_section_is_one_line():
    cases = [
        ({"type": "calculater"}, "env.type = 'calculater': no such name; did you mean 'calculator'?"),
        (
            {"type": "calculator", "options": {"roll": "user"}},
            "env.options.roll: Calculator takes no such option",
        ),
        (
            {"type": "calculator", "options": {"role": "critic"}},
            "ValueError: role must be 'tool' or 'user', got 'critic'",
        ),
        (
            {"type": "single_turn", "options": {"role": "user"}},
            "env.options.role: SingleTurn takes no such option",
        ),
    ]
    for section, message in cases:
        with case(section):
            with pytest.raises(PluginError) as caught:
                open_env(Env(**section))
            assert message in str(caught.value)


def test_what_is_no_environment_is_told_at_the_start(tmp_path):
    cases = [
        (f"class E:\n{METHODS}", "E has no method 'close', which an Environment needs"),
        (f"class E:\n{METHODS}    def close(self): ...\n", "E.close must be `async def`"),
        ("def E(): return 3\n", "int has no method 'start'"),
        ("def E(): raise KeyError('no')\n", "mine.py:1: KeyError: 'no'"),
    ]
    for body, message in cases:
        with case(body):
            (tmp_path / "mine.py").write_text(body)
            with pytest.raises(PluginError) as caught:
                open_env(Env(type=f"{tmp_path}/mine.py:E"))
            assert message in str(caught.value)
