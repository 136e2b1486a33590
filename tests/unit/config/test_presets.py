"""`algo.type` is a name for defaults over several keys, each of which can still be set."""

from functools import reduce
from pathlib import Path

from cases import case

from strop.config.algo_rules import advice
from strop.config.differences import differences, settings_of
from strop.config.load import Loaded, load_config
from strop.config.presets import PRESETS
from strop.config.schema import resolve
from strop.config.show import from_json, to_json, to_toml
from strop.config.values import load_values

EXAMPLES = Path(__file__).parents[3] / "examples/first_run"
BASE = ["--model", "tiny", "--loop.steps", "1", "--prompts.files", "/a"]
TAUGHT = {"opd": " --algo.teacher.model tiny"}
"""Recipes that are nothing by themselves."""


def load(flags: str = "", text: str = "", at: Path | None = None) -> Loaded:
    files = []
    if at is not None:
        files = [at / "run.toml"]
        files[0].write_text(text)
    return load_config(files, [*BASE, *flags.split()])


def test_every_recipe_is_a_run_of_known_keys() -> None:
    for name in PRESETS:
        with case(name):
            loaded = load(f"--algo.type {name}{TAUGHT.get(name, '')}")
            for key, value in PRESETS[name].items():
                assert resolve(key.split(".")) is not None
                assert reduce(getattr, key.split("."), loaded.config) == value
                assert loaded.origins[key] == f"algo.type = {name}"


def test_every_recipe_has_an_example_that_differs_by_nothing_else() -> None:
    for name in [name for name in PRESETS if "algo.objective" not in PRESETS[name]]:
        with case(name):
            plain = settings_of(load_config([EXAMPLES / "run.toml"]))
            found = differences(plain, settings_of(load_config([EXAMPLES / f"{name}.toml"])))
            keys = {difference.key for difference in found}
            assert {key for key in keys if not key.startswith("algo.teacher.")} <= {
                "name",
                "algo.type",
                *PRESETS[name],
            }
            assert name in TAUGHT or not any(key.startswith("algo.teacher.") for key in keys)


def test_grpo_is_what_is_the_default_anyway() -> None:
    assert load("--algo.type grpo").config == load().config


def test_a_file_and_a_flag_win_over_the_recipe(tmp_path: Path) -> None:
    loaded = load("--algo.clip_low 1e-3", '[algo]\ntype = "gspo"\nclip_high = 2e-3\n', tmp_path)
    assert (loaded.config.algo.clip_low, loaded.config.algo.clip_high) == (1e-3, 2e-3)
    assert loaded.origins["algo.clip_low"] == "--algo.clip_low"
    assert loaded.config.algo.policy_loss == "gspo"


def test_a_filter_of_a_recipe_can_be_taken_away() -> None:
    assert load("--algo.type dapo").config.rollout.keep == "reward_std"
    assert load("--algo.type dapo --rollout.keep none").config.rollout.keep is None
    assert load("--algo.type dapo --rollout.keep all").config.rollout.keep == "all"


def test_what_is_shown_of_a_recipe_loads_as_the_same_run(tmp_path: Path) -> None:
    for name in PRESETS:
        with case(name):
            loaded = load(f"--algo.type {name}{TAUGHT.get(name, '')}")
            (tmp_path / "shown.toml").write_text(to_toml(loaded))
            assert load_config([tmp_path / "shown.toml"]).config == loaded.config


def test_the_origin_that_is_shown_is_the_recipe() -> None:
    loaded = load("--algo.type dapo")
    assert any("reward_std" in line and "# algo.type = dapo" in line for line in to_toml(loaded).splitlines())
    assert from_json(to_json(loaded)).origins["rollout.keep"] == "algo.type = dapo"


def test_recipes_differ_by_their_keys_in_a_comparison() -> None:
    found = differences(settings_of(load()), settings_of(load("--algo.type cispo")))
    assert {difference.key for difference in found} == {"algo.type", "algo.policy_loss", "algo.clip_low"}


def test_another_recipe_over_a_stored_run_brings_its_own_keys() -> None:
    stored = load("--algo.type gspo")
    again = load_values(stored.config.model_dump(mode="json"), stored.origins, ["--algo.type", "rloo"])
    assert (again.config.algo.policy_loss, again.config.algo.advantage) == ("clip", "leave_one_out")


def test_slimes_estimators_are_recipes() -> None:
    cases = [
        ("gspo", "gspo"),
        ("ppo", "ppo"),
        ("reinforce_plus_plus", "reinforce_pp"),
        ("reinforce_plus_plus_baseline", "reinforce_pp_baseline"),
    ]
    for slimes, own in cases:
        assert load(f"--advantage-estimator {slimes}").config.algo.type == own, slimes


def test_slimes_flags_set_the_keys_of_the_loss() -> None:
    algo = load(
        "--kl-coef 0.1 --gamma 0.9 --disable-rewards-normalization --normalize-advantages "
        "--use-tis --tis-clip 3 --tis-clip-low 0.1 --use-opsm"
    ).config.algo
    assert (algo.kl_coef, algo.gamma, algo.advantage, algo.whiten) == (0.1, 0.9, "returns", "bessel")
    assert (algo.correction.type, algo.correction.low, algo.correction.high) == ("tis", 0.1, 3.0)
    assert algo.opsm_delta == 1e-4
    assert load("--use-opsm --opsm-delta 0.2").config.algo.opsm_delta == 0.2
    assert load("--use-tis --tis-threshold 4").config.algo.correction.high == 4.0
    assert load("--use-rollout-logprobs --get-mismatch-metrics").config.algo.old == "behavior"
    assert load("--kl-loss-coef 0.1 --use-unbiased-kl").config.algo.kl_unbiased


def test_one_sample_a_prompt_is_enough_without_a_group_baseline() -> None:
    for name in ("reinforce_pp", "remax"):
        assert load(f"--algo.type {name} --rollout.samples_per_prompt 1").config.algo.type == name


def test_k1_as_a_loss_is_said_to_be_noise() -> None:
    assert "no expected gradient" in next(
        advice(load("--algo.kl_loss_coef 0.1 --algo.kl_loss_type k1").config)
    )
    assert not list(advice(load("--algo.kl_loss_coef 0.1").config))


def test_a_run_without_reward_and_teacher_is_said_to_learn_nothing() -> None:
    cases = ["", "--algo.teacher.model tiny", "--env.type calculator", "--algo.type dpo"]
    for more in cases:
        with case(more):
            flags = more if "dpo" in more else f"--reward.fn none {more}"
            told = list(advice(load(flags).config))
            assert [("nothing is learnt" in note) for note in told] == ([] if more else [True])
