"""Every reward, built in or plugged in by path, module, entry point or object, keeps the seam's promises."""

import copy
from pathlib import Path

import plugins_sample
import pytest
from cases import case

from strop.config.tree import Reward
from strop.errors import PluginError
from strop.plugins import resolve
from strop.rewards.call import Scorer
from strop.rewards.open import BUILTIN, GROUP, bind, open_rewards
from strop.rewards.select import Rewards
from strop.sample import Sample, Scores, Tokens

PATH = str(Path(__file__).with_name("plugins_sample.py"))
SECTIONS = [
    *(
        Reward(fn=name)
        for name in sorted(BUILTIN.keys() - {"regex", "format", "overlong", "remote", "judge", "model"})
    ),
    *(Reward(fn=f"boxed_{name}") for name in ("exact", "f1", "gpqa", "gsm8k", "first_number")),
    Reward(fn="regex", options={"pattern": r"\d+"}),
    Reward(fn="format", options={"pattern": ".*"}),
    Reward(fn="overlong", options={"limit": 20, "cache": 4}),
    Reward(weights={"exact": 1.0, "format": 0.1}, options={"format": {"pattern": ".*"}}),
    Reward(fn=f"{PATH}:length"),
    Reward(fn=f"{PATH}:length", options={"scale": 2.0}),
    Reward(fn=f"{PATH}:awaited_length"),
    Reward(fn=f"{PATH}:doubled_length"),
    Reward(fn=f"{PATH}:Length", options={"scale": 2.0}),
    Reward(fn="plugins_sample:length"),
    Reward(fn="measured"),
]
OBJECTS = [plugins_sample.length, plugins_sample.awaited_length, plugins_sample.Length(), lambda sample: 1]


def finished_sample(response="42", label=42):
    tokens = Tokens.context([1, 2]) + Tokens.drawn([3], [-0.5], [0])
    return Sample(
        index=0,
        group_id=0,
        prompt_id="p",
        response=response,
        label=label,
        sequence=tokens,
        prompt_length=2,
        metadata={"correct_letter": "B"},
    )


@pytest.fixture(autouse=True)
def installed_package(tmp_path, monkeypatch):
    """An installed package that offers `measured` as an entry point."""
    described = tmp_path / "measuring-1.0.dist-info"
    described.mkdir()
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: measuring\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text(f"[{GROUP}]\nmeasured = plugins_sample:length\n")
    monkeypatch.syspath_prepend(tmp_path)


def rewards():
    """(name, opened) of each section and of each object."""
    opened = [(section.fn, open_rewards(section)) for section in SECTIONS if section.fn != "measured"]
    given = [
        Scorer(bind(fn, {}, key="reward.options"), name="object", timeout_s=5, retries=0, concurrency=2)
        for fn in OBJECTS
    ]
    return opened + [(f"object {at}", Rewards(scorer)) for at, scorer in enumerate(given)]


async def test_a_finished_sample_is_worth_a_finite_number():
    for name, reward in rewards():
        with case(name):
            scores = await reward.score(finished_sample())
            assert isinstance(scores, Scores)
            assert abs(scores.value) < float("inf")


async def test_equal_samples_are_worth_the_same():
    for name, reward in rewards():
        with case(name):
            assert await reward.score(finished_sample()) == await reward.score(finished_sample())


async def test_the_sample_is_left_as_it_was():
    for name, reward in rewards():
        with case(name):
            sample = finished_sample()
            before = copy.deepcopy(sample)
            await reward.score(sample)
            assert sample == before


RESPONSES = [
    "",
    " ",
    "\n",
    "💡",
    "x" * 100_000,
    "-",
    "1" * 5_000,
    "\ufffd",
    "\0\ud800",
    r"\boxed{42}",
    r"\boxed{" * 9,
]


async def test_any_response_can_be_scored():
    for section in SECTIONS:
        reward = open_rewards(section)
        for response in RESPONSES:
            with case(section.fn, response[:20]):
                assert await reward.score(finished_sample(response))


def test_names_of_installed_packages_are_offered():
    with pytest.raises(PluginError, match=r"did you mean 'measured'\?"):
        open_rewards(Reward(fn="mesured"))


def test_every_built_in_reward_has_a_line_of_help():
    helped = {name: resolve(path, key=name, names={}, group=GROUP).__doc__ for name, path in BUILTIN.items()}
    assert [name for name, text in helped.items() if not text or text.startswith(name)] == []
    assert {"remote", "judge"} <= helped.keys()  # scored with in tests/unit/rewards: somebody must answer
