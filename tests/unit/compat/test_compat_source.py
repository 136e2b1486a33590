"""Data sources of slime's as sources of prompts: order, buffers in both forms of filter, and resuming."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from cases import case
from slime_run import runtime

from strop.compat.data_source import DataSource, RolloutDataSource, RolloutDataSourceWithBuffer
from strop.compat.load import load
from strop.compat.open import open_slime
from strop.compat.sample import Sample
from strop.compat.source import SlimeSource
from strop.config.load import load_config
from strop.errors import DataError, InputError
from strop.prompts.open import open_prompts
from strop.sample import Status

EXAMPLES = Path(__file__).parents[3] / "examples/slime_functions"
DATA = f"--prompt-data {EXAMPLES}/prompts.jsonl --input-key input --label-key answer"
BUFFER = "--buffer-filter-path"


def source_of(tiny_dir, flags="", *, cls=RolloutDataSourceWithBuffer):
    run = runtime(tiny_dir, f"{DATA} {flags}", serves=False)
    return SlimeSource(lambda: cls(run.args), name=cls.__name__, group_size=2)


def played(group, reward):
    for sample in group:
        sample.reward, sample.tokens, sample.status = {"score": reward}, [1, 2], Status.COMPLETED
    return group


def texts(prompts):
    return [prompt.messages for prompt in prompts]


@pytest.mark.parametrize("cls", [RolloutDataSource, RolloutDataSourceWithBuffer])
def test_slimes_own_sources_give_the_prompts_that_strop_gives(tiny_dir, cls):
    source = source_of(tiny_dir, cls=cls)
    own = open_prompts(load_config([], f"--hf-checkpoint tiny --num-rollout 1 {DATA}".split()).config.prompts)
    assert [source.next(3) for _ in range(4)] == [own.source.next(3) for _ in range(4)]
    assert len(source) == 8


def test_groups_count_as_in_slime(tiny_dir):
    made = source_of(tiny_dir).made
    groups = made.get_samples(2) + made.get_samples(1)
    assert [[(s.group_index, s.index) for s in group] for group in groups] == [
        [(0, 0), (0, 1)],
        [(1, 2), (1, 3)],
        [(2, 4), (2, 5)],
    ]
    assert groups[0][0].prompt == groups[0][1].prompt
    assert groups[0][0] is not groups[0][1]


def test_a_source_of_samples_of_ones_own_goes_round():
    args = SimpleNamespace(n_samples_per_prompt=1)
    made = RolloutDataSource([Sample(prompt="a"), Sample(prompt="b")], args)
    assert [group[0].prompt for group in made.get_samples(3)] == ["a", "b", "a"]
    made.add_samples([[Sample()]])
    assert len(made) == 2


def test_groups_that_were_added_come_first_and_are_played_anew(tiny_dir):
    source = source_of(tiny_dir)
    first = source.next(2)
    source.made.add_samples([played(group, 0.5) for group in source.made.get_samples(1)])
    assert source.made.get_buffer_length() == 1
    again, *fresh = source.next(2)
    assert again.id not in {prompt.id for prompt in first}
    assert (again.metadata, source.made.get_buffer_length()) == ({}, 0)
    assert len(fresh) == 1


@pytest.mark.parametrize(("name", "chosen"), [("buffer_filter", [0.1]), ("best_first", [0.9])])
def test_a_buffer_filter_chooses_in_both_forms(tiny_dir, name, chosen):
    source = source_of(tiny_dir, f"{BUFFER} {EXAMPLES}/buffer_filter.py:{name}")
    groups = source.made.get_samples(3)
    source.made.add_samples([played(g, r) for g, r in zip(groups, (0.5, 0.9, 0.1), strict=True)])
    rewards = {g[0].reward["score"]: g[0].prompt for g in groups}
    assert texts(source.next(1)) == [rewards[r] for r in chosen]
    assert source.made.get_buffer_length() == 2


@pytest.mark.parametrize(
    ("given", "message"),
    [([[Sample()]], "groups of 2 samples"), ([Sample(), Sample()], "groups of 2 samples")],
)
def test_what_is_added_must_be_groups(tiny_dir, given, message):
    with pytest.raises(ValueError, match=message):
        source_of(tiny_dir).made.add_samples(given)


def test_a_position_with_a_buffer_can_be_gone_back_to(tiny_dir):
    straight, resumed = source_of(tiny_dir), source_of(tiny_dir)
    straight.next(3)
    straight.made.add_samples([played(group, 0.5) for group in straight.made.get_samples(2)])
    resumed.restore(json.loads(json.dumps(straight.state())))
    assert [resumed.next(3) for _ in range(3)] == [straight.next(3) for _ in range(3)]
    assert resumed.state() == straight.state()


def test_a_source_of_the_users_own_is_asked_again(tiny_dir):
    sums = load(f"slime:{EXAMPLES}/data_source.py:Sums", key="prompts.source")
    straight, resumed = source_of(tiny_dir, cls=sums), source_of(tiny_dir, cls=sums)
    assert texts(straight.next(2)) == ["0 + 0 =", "1 + 0 ="]
    straight.next(3)
    straight.next(3)
    assert straight.state()["calls"] == [[2, 1], [3, 2]]
    resumed.restore(json.loads(json.dumps(straight.state())))
    assert resumed.next(2) == straight.next(2)
    assert (len(resumed), straight.next(1)[0].messages) == (0, "0 + 1 =")


def test_a_source_that_does_not_repeat_itself_cannot_be_resumed(tiny_dir):
    counted = []

    class Restless(DataSource):
        def __init__(self, args):
            counted.append(0)

        def get_samples(self, num_samples):
            return [[Sample(prompt=f"{len(counted)}") for _ in range(2)] for _ in range(num_samples)]

    source = source_of(tiny_dir, cls=Restless)
    source.next(2)
    with pytest.raises(DataError, match="Restless gave other prompts than when the run began"):
        source.restore(source.state())


def giving(answer):
    class Mine:
        def __init__(self, args):
            pass

        def get_samples(self, n):
            return answer()

    return Mine


def pair(**fields):
    return [Sample(**{"prompt": "a", **fields}) for _ in range(2)]


WRONG = {
    "raises": (lambda: 1 / 0, "ZeroDivisionError"),
    "too few groups": (lambda: [pair()], r"get_samples\(2\): expected 2 groups, got 1"),
    "no list": (lambda: None, r"expected 2 groups, got NoneType"),
    "no samples": (lambda: [[1, 2], [3, 4]], r"expected a group of samples, got \[1, 2\]"),
    "groups of one": (lambda: [pair()[:1]] * 2, "a group of 1 samples, but rollout.samples_per_prompt = 2"),
    "two prompts": (
        lambda: [[Sample(prompt="a"), Sample(prompt="b")]] * 2,
        "samples of a group have different prompts",
    ),
    "no prompt": (lambda: [pair(prompt="")] * 2, "a sample has no prompt"),
    "tokens": (lambda: [pair(tokens=[1])] * 2, "a sample has 1 tokens; at staleness 0 none is continued"),
    "own reward": (lambda: [pair(custom_rm_path="a.b")] * 2, "custom_rm_path = 'a.b' is not supported yet"),
}


def test_what_a_source_gets_wrong_is_one_line(tiny_dir):
    for name, (answer, message) in WRONG.items():
        with case(name):
            with pytest.raises(DataError, match=message) as caught:
                source_of(tiny_dir, cls=giving(answer)).next(2)
            assert "\n" not in str(caught.value)


def test_the_pages_form_gives_one_sample_for_each_group(tiny_dir):
    source = source_of(tiny_dir, cls=giving(lambda: [Sample(prompt="a"), Sample(prompt="b", label="1")]))
    first, second = source.next(2)
    assert (first.messages, second.messages, second.label) == ("a", "b", "1")
    assert first.id != second.id


def test_rm_type_in_the_metadata_is_the_prompts_reward(tiny_dir):
    source = source_of(tiny_dir, cls=giving(lambda: [pair(metadata={"rm_type": "math"})] * 2))
    assert source.next(2)[0].reward == "math"


def opened(tiny_dir, flags):
    config = load_config([], f"--hf-checkpoint tiny --num-rollout 1 {DATA} {flags}".split()).config
    return open_slime(config, tiny_dir)


def test_a_run_without_such_functions_opens_nothing(tiny_dir):
    assert opened(tiny_dir, "").runtime is None


def test_a_run_opens_the_source_that_it_names(tiny_dir):
    slime = opened(tiny_dir, f"{BUFFER} {EXAMPLES}/buffer_filter.py:best_first")
    source = slime.source()
    assert isinstance(source.made, RolloutDataSourceWithBuffer)
    assert slime.runtime.data_source is source.made


def test_options_that_a_source_does_not_take_are_refused(tiny_dir):
    slime = opened(tiny_dir, f"{BUFFER} {EXAMPLES}/buffer_filter.py:best_first --prompts.options.sise 3")
    with pytest.raises(
        InputError, match=r"prompts.options.sise: prompts.source = .* takes buffer_filter alone"
    ):
        slime.source()
