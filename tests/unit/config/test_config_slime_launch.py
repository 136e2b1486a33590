"""A launch line of slime's starts the same run as the run file that says the same."""

from pathlib import Path

import pytest
from cases import case

from strop.config.load import load_config
from strop.config.schema import leaf_paths
from strop.config.toml_text import dotted
from strop.errors import ConfigError

LAUNCH = """
--actor-num-nodes 1 --actor-num-gpus-per-node 1 --rollout-num-gpus 1
--rollout-num-gpus-per-engine 1 --colocate
--tensor-model-parallel-size 1 --pipeline-model-parallel-size 1
--hf-checkpoint tiny
--prompt-data train.jsonl@[0:8] --input-key question --label-key answer --metadata-key facts --tool-key tools
--apply-chat-template --apply-chat-template-kwargs {"enable_thinking":false} --rollout-shuffle
--rollout-max-prompt-len 64
--num-rollout 7 --rollout-batch-size 4 --n-samples-per-prompt 8 --global-batch-size 16
--num-steps-per-rollout 2
--rollout-max-response-len 96 --rollout-max-context-len 160 --rollout-temperature 0.8 --rollout-top-p 0.95
--rollout-top-k 50 --rollout-stop </answer> END --rollout-stop-token-ids 5 6 --over-sampling-batch-size 6
--rollout-seed 3 --seed 11 --max-turns 3
--dynamic-sampling-filter-path slime.rollout.filter_hub.dynamic_sampling_filters.check_reward_nonzero_std
--custom-generate-function-path my.mod.generate --rollout-sample-hook-path my.mod.hook
--custom-rm-path my_rewards.py:reward_func --group-rm --reward-key score
--buffer-filter-path my.mod.buffer_filter --data-source-path my.mod.Source
--advantage-estimator grpo --use-kl-loss --kl-loss-coef 0.001 --kl-loss-type low_var_kl
--calculate-per-token-loss --eps-clip 0.2 --eps-clip-high 0.28 --disable-grpo-std-normalization
--entropy-coef 0.01
--lr 1e-5 --lr-decay-style cosine --lr-warmup-iters 2 --weight-decay 0.1 --adam-beta1 0.9 --adam-beta2 0.98
--clip-grad 0.5 --optimizer adam --use-dynamic-batch-size --max-tokens-per-gpu 2048
--attention-dropout 0.0 --hidden-dropout 0.0
--eval-prompt-data dev dev.jsonl --eval-prompt-data test test.jsonl --n-samples-per-eval-prompt 2
--eval-interval 5 --eval-temperature 0.6 --eval-top-p 0.7 --eval-top-k 20 --eval-max-response-len 48
--eval-input-key q --eval-label-key a --eval-tool-key t
--save-interval 5 --use-wandb --wandb-project mine --wandb-group g --use-tensorboard
"""

RUN = """
model = "tiny"
[prompts]
files = ["train.jsonl@[0:8]"]
source = "slime:my.mod.Source"
options = { buffer_filter = "slime:my.mod.buffer_filter" }
input_key = "question"
label_key = "answer"
metadata_key = "facts"
tool_key = "tools"
chat_template = true
chat_template_kwargs = { enable_thinking = false }
shuffle = true
max_tokens = 64
seed = 3
[env]
max_turns = 3
[rollout]
batch_size = 4
samples_per_prompt = 8
max_response_tokens = 96
max_context_tokens = 160
temperature = 0.8
top_p = 0.95
top_k = 50
stop = ["</answer>", "END"]
stop_token_ids = [5, 6]
over_sample = 2
keep = "reward_std"
generate = "slime:my.mod.generate"
hooks = ["slime:my.mod.hook"]
[reward]
fn = "slime:my_rewards.py:reward_func"
group = true
score_key = "score"
[algo]
type = "grpo"
normalize_std = false
aggregation = "token_mean"
clip_low = 0.2
clip_high = 0.28
kl_loss_coef = 0.001
kl_loss_type = "low_var_kl"
entropy_coef = 0.01
[train]
batch_size = 16
updates_per_step = 2
max_tokens_per_device = 2048
[train.optim]
lr = 1e-5
schedule = "cosine"
warmup = 2
weight_decay = 0.1
betas = [0.9, 0.98]
clip = 0.5
[eval]
every = 5
[[eval.datasets]]
name = "dev"
files = ["dev.jsonl"]
samples_per_prompt = 2
temperature = 0.6
top_p = 0.7
top_k = 20
max_response_tokens = 48
input_key = "q"
label_key = "a"
tool_key = "t"
[[eval.datasets]]
name = "test"
files = ["test.jsonl"]
samples_per_prompt = 2
temperature = 0.6
top_p = 0.7
top_k = 20
max_response_tokens = 48
input_key = "q"
label_key = "a"
tool_key = "t"
[store]
checkpoint_every = 5
[telemetry]
sinks = ["console", "wandb", "tensorboard"]
wandb = { project = "mine", group = "g" }
[loop]
steps = 7
seed = 11
"""

UNSUPPORTED = [
    "--tis-threshold 2",
    "--true-on-policy-mode",
    "--custom-tis-function-path my.mod.correct",
    "--custom-advantage-function-path my.mod.advantage",
    "--async-buffer-size 2",
    "--update-weights-interval 2",
    "--rollout-function-path my.mod.rollout",
    "--initial-megatron-checkpoint dir",
    "--sglang-tp-size 1",
    "--sglang-mem-fraction-static 0.7",
    "--micro-batch-size 1",
    "--actor-num-gpus-per-node 8",
]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_launch_line_is_the_run_file_key_by_key() -> None:
    Path("run.toml").write_text(RUN)
    launched = dict(leaf_paths(load_config([], LAUNCH.split()).config))
    written = dict(leaf_paths(load_config([Path("run.toml")]).config))
    differing = {
        dotted(path): (launched[path], written[path]) for path in written if launched[path] != written[path]
    }
    assert differing == {}
    assert launched.keys() == written.keys()


def test_a_flag_that_strop_cannot_follow_yet_is_answered_by_its_name() -> None:
    for flag in UNSUPPORTED:
        with case(flag):
            with pytest.raises(ConfigError) as caught:
                load_config(
                    [],
                    ["--hf-checkpoint", "tiny", "--num-rollout", "1", "--prompt-data", "/a", *flag.split()],
                )
            line = str(caught.value)
            assert line.startswith(flag.split()[0] + ": ")
            assert "unknown" not in line
            assert "\n" not in line
