"""The `reward` section becomes a scorer, or one line that says what is wrong."""

import pytest
from cases import case

from strop.config.tree import Reward
from strop.errors import PluginError
from strop.rewards.open import open_rewards
from strop.sample import Sample, Scores


async def worth(section, response, label=None):
    return await open_rewards(section).score(Sample(index=0, group_id=0, response=response, label=label))


async def test_every_built_in_scores():
    cases = [
        ("exact", {}, "4"),
        ("first_number", {}, "it is 4"),
        ("regex", {"pattern": r"is (\d)"}, "it is 4"),
        ("format", {"pattern": "it.*"}, "it is 4"),
    ]
    for fn, options, response in cases:
        assert await worth(Reward(fn=fn, options=options), response, 4) == Scores(1.0), (fn, options)


async def test_a_function_of_mine_takes_its_options(tmp_path):
    (tmp_path / "mine.py").write_text("def f(sample, *, scale): return scale * len(sample.response)")
    assert await worth(Reward(fn=f"{tmp_path}/mine.py:f", options={"scale": 2}), "abc") == Scores(6.0)


def test_a_wrong_section_is_one_line():
    cases = [
        (
            "exat",
            {},
            "reward.fn = 'exat': no such name; did you mean 'exact'? "
            "(dapo, deepscaler, exact, f1, first_number, format, gpqa, gsm8k, "
            "judge, math, model, none, overlong, "
            "random, regex, remote, file.py:name, package.module:name)",
        ),
        ("exact", {"strip": 1}, "reward.options.strip: exact takes no such option; it takes none"),
        ("regex", {}, "reward.options: Regex needs 'pattern'; add reward.options.pattern = …"),
        (
            "regex",
            {"patern": "a"},
            "reward.options.patern: Regex takes no such option; did you mean 'pattern'?",
        ),
        ("math:hypot", {}, "reward.options: hypot does not tell what it takes; wrap it in a def"),
    ]
    for fn, options, message in cases:
        with case(fn, options):
            with pytest.raises(PluginError) as caught:
                open_rewards(Reward(fn=fn, options=options))
            assert str(caught.value) == message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pattern": "("}, "missing \\), unterminated subpattern at position 0"),
        ({"pattern": "a", "group": 1}, "ValueError: pattern 'a' has no group 1"),
    ],
)
def test_an_option_that_can_never_work_is_refused_at_the_start(options, message):
    with pytest.raises(PluginError, match=f"reward.options: .*{message}"):
        open_rewards(Reward(fn="regex", options=options))


def test_a_class_whose_objects_cannot_be_called_is_refused(tmp_path):
    (tmp_path / "mine.py").write_text("class F:\n    pass")
    with pytest.raises(PluginError, match="a F cannot be called with a sample"):
        open_rewards(Reward(fn=f"{tmp_path}/mine.py:F"))
