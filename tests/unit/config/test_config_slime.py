"""slime's flags: each sets what it set there, or is answered by name."""

from pathlib import Path

import pytest

from strop.config import slime
from strop.config.load import Loaded, load_config
from strop.config.schema import slime_flags
from strop.config.slime_flags import ANSWERS, CAUTIONS, answer_for
from strop.errors import ConfigError

ALL = (Path(__file__).parent / "flags_of_slime.txt").read_text().split()
"""Every flag of slime's, of its API page, and of Megatron's and SGLang's that its launch scripts use."""


def load(flags: str, text: str = "") -> Loaded:
    Path("run.toml").write_text(f'model = "tiny"\n[loop]\nsteps = 5\n[prompts]\nfiles = ["/a"]\n{text}')
    return load_config([Path("run.toml")], flags.split())


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_every_flag_of_slime_is_answered() -> None:
    setting = {*slime_flags(), *slime.EARLY, *slime.LATE}
    assert [flag for flag in ALL if flag not in setting and not answer_for(flag)] == []
    assert len(ALL) > 360


def test_a_flag_without_a_key_is_refused_by_name() -> None:
    for flag in filter(answer_for, ALL):
        with pytest.raises(ConfigError, match=rf"^{flag}: (?!unknown)"):
            load(f"{flag} xyzzy")


def test_no_flag_is_answered_twice() -> None:
    answered = [name for answer in ANSWERS for name in answer.flags.split()]
    setting = [*slime_flags(), *slime.EARLY, *slime.LATE]
    assert len(answered) == len(set(answered))
    assert not set(answered) & set(setting)
    assert set(setting) >= set(CAUTIONS)


def test_flat_flags_set_their_keys() -> None:
    config = load(
        "--hf-checkpoint smollm2-135m --rollout-batch-size 4 --n-samples-per-prompt 4 --num-rollout 7 "
        "--lr 1e-5 --kl-loss-coef 0.01 --kl-loss-type low_var_kl "
        "--apply-chat-template --rollout-stop-token-ids 1 2"
    ).config
    assert (config.model, config.loop.steps) == ("smollm2-135m", 7)
    assert (config.rollout.batch_size, config.rollout.samples_per_prompt) == (4, 4)
    assert config.rollout.stop_token_ids == [1, 2]
    assert (config.train.optim.lr, config.algo.kl_loss_type) == (1e-5, "low_var_kl")


def test_switches_set_the_value_that_they_stand_for() -> None:
    config = load(
        "--rollout-shuffle --disable-grpo-std-normalization --calculate-per-token-loss",
        'shuffle = false\n[algo]\naggregation = "seq_mean_token_mean"',
    ).config
    assert config.prompts.shuffle
    assert not config.algo.normalize_std
    assert config.algo.aggregation == "token_mean"


def test_one_beta_leaves_the_other_as_it_was() -> None:
    text = "[train.optim]\nbetas = [0.8, 0.95]"
    assert load("--adam-beta2 0.99", text).config.train.optim.betas == (0.8, 0.99)
    assert load("--adam-beta1 0.7 --adam-beta2 0.99", text).config.train.optim.betas == (0.7, 0.99)


def test_eps_clip_is_symmetric_unless_the_upper_bound_is_given() -> None:
    assert load("--eps-clip 0.1").config.algo.clip_high == 0.1
    assert load("--eps-clip 0.1 --eps-clip-high 0.3").config.algo.clip_high == 0.3
    assert load("--eps-clip 0.1", "[algo]\nclip_high = 0.4").config.algo.clip_high == 0.4
    assert load("--algo.clip_low 0.1").config.algo.clip_high == 0.28


def test_eval_flags_make_data_sets() -> None:
    loaded = load(
        "--eval-prompt-data dev dev.jsonl test /t.jsonl --n-samples-per-eval-prompt 4 --eval-temperature 0.7"
    )
    first, second = loaded.config.eval.datasets
    assert (first.name, first.files) == ("dev", [str(Path.cwd() / "dev.jsonl")])
    assert (second.name, second.files) == ("test", ["/t.jsonl"])
    assert {first.samples_per_prompt, second.samples_per_prompt} == {4}
    assert first.temperature == 0.7
    assert loaded.origins["eval.datasets.1.temperature"] == "--eval-temperature"


def test_over_sampling_counts_from_the_batch() -> None:
    assert load("--over-sampling-batch-size 12 --rollout-batch-size 10").config.rollout.over_sample == 2


def test_slimes_own_filter_becomes_strops() -> None:
    name = "slime.rollout.filter_hub.dynamic_sampling_filters.check_reward_nonzero_std"
    assert load(f"--dynamic-sampling-filter-path {name}").config.rollout.keep == "reward_std"


def test_a_flag_that_asks_for_what_strop_does_anyway_is_accepted() -> None:
    plain = load("").config
    assert load("--colocate --tensor-model-parallel-size 1 --attention-dropout 0.0").config == plain
    assert (
        load("--use-dynamic-batch-size --rollout-top-p 1 --rollout-top-k -1 --optimizer adam").config == plain
    )


HERE = "slime:{}/my_functions.py"


def test_functions_of_slime_are_marked_as_such_and_anchored() -> None:
    config = load(
        "--custom-generate-function-path my_functions.py:generate --custom-rm-path pkg.rewards.fn --group-rm "
        "--dynamic-sampling-filter-path pkg.filters.f --data-source-path my_functions.py:Source "
        "--buffer-filter-path my_functions.py"
    ).config
    here = HERE.format(Path.cwd())
    assert config.rollout.generate == f"{here}:generate"
    assert (config.reward.fn, config.reward.group) == ("slime:pkg.rewards.fn", True)
    assert config.rollout.keep == "slime:pkg.filters.f"
    assert config.prompts.source == f"{here}:Source"
    assert config.prompts.options == {"buffer_filter": here}


def test_functions_of_slime_in_a_file_are_beside_the_file() -> None:
    text = '[rollout]\ngenerate = "slime:my_functions.py:generate"\nhooks = ["slime.filter:my_functions.py"]'
    rollout = load("", text).config.rollout
    assert rollout.generate == f"{HERE.format(Path.cwd())}:generate"
    assert rollout.hooks == [f"slime.filter:{Path.cwd()}/my_functions.py"]


def test_hooks_are_added_one_behind_another() -> None:
    hooks = load(
        "--rollout-sample-hook-path a.b --rollout-sample-filter-path c.d --rollout-sample-hook-path e.f "
        "--rollout-all-samples-process-path g.h",
        '[rollout]\nhooks = ["mine:first"]',
    ).config.rollout.hooks
    assert hooks == ["mine:first", "slime:a.b", "slime.filter:c.d", "slime:e.f", "slime.process:g.h"]


def test_a_hook_by_its_key_and_one_by_slimes_flag_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match=r"rollout.hooks is set twice, by `--rollout.hooks a:b` and by"):
        load("--rollout.hooks a:b --rollout-sample-hook-path c.d")


def test_sinks_are_added_to_the_console() -> None:
    assert load("--use-wandb --use-tensorboard").config.telemetry.sinks == ["console", "wandb", "tensorboard"]
    assert load("--use-wandb", '[telemetry]\nsinks = ["tensorboard"]').config.telemetry.sinks == [
        "tensorboard",
        "wandb",
    ]
    wandb = load("--use-wandb --wandb-project p --wandb-group g --wandb-team t --wandb-mode online")
    assert wandb.config.telemetry.wandb.model_dump() == {
        "project": "p",
        "group": "g",
        "entity": "t",
        "mode": "online",
    }


def test_a_slice_of_a_file_is_read() -> None:
    assert load("--prompt-data x.jsonl@[0:8]").config.prompts.files == [f"{Path.cwd()}/x.jsonl@[0:8]"]


def test_eval_prompt_data_may_come_several_times() -> None:
    sets = load("--eval-prompt-data a /a --n-samples-per-eval-prompt 1 --eval-prompt-data b /b").config.eval
    assert [(s.name, s.files) for s in sets.datasets] == [("a", ["/a"]), ("b", ["/b"])]


def test_eval_flags_set_every_data_set() -> None:
    (dev,) = load(
        "--eval-prompt-data dev /d --eval-temperature 0.7 --eval-top-p 0.9 --eval-top-k 20 "
        "--eval-max-response-len 64 --eval-input-key q --eval-label-key a --eval-tool-key t "
        "--n-samples-per-eval-prompt 2"
    ).config.eval.datasets
    assert (dev.temperature, dev.top_p, dev.top_k, dev.max_response_tokens) == (0.7, 0.9, 20, 64)
    assert (dev.input_key, dev.label_key, dev.tool_key, dev.samples_per_prompt) == ("q", "a", "t", 2)


@pytest.mark.parametrize("name", ["reward_std", "check_reward_nonzero_std_with_fallback"])
def test_slimes_own_filters_become_strops(name: str) -> None:
    own = {"reward_std": "reward_std", "check_reward_nonzero_std_with_fallback": "reward_std_or_fill"}
    path = f"slime.rollout.filter_hub.dynamic_sampling_filters.{name}" if "check" in name else name
    assert load(f"--dynamic-sampling-filter-path {path}").config.rollout.keep == own[name]


@pytest.mark.parametrize("module", ["rollout.data_source", "data"])
def test_slimes_own_data_source_is_what_strop_does_anyway(module: str) -> None:
    plain = load("").config
    assert load(f"--data-source-path slime.{module}.RolloutDataSourceWithBuffer").config == plain


def test_a_filter_of_the_buffer_brings_the_source_that_has_one() -> None:
    source = load("--buffer-filter-path pkg.f").config.prompts
    assert source.source == "slime:slime.rollout.data_source.RolloutDataSourceWithBuffer"
    assert source.options == {"buffer_filter": "slime:pkg.f"}
