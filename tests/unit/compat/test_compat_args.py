"""`args`: slime's names, from the run's configuration; frozen, and honest about what is not there."""

from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from strop.compat.arguments import make_args
from strop.config.load import load_config

FLAGS = """
--hf-checkpoint tiny --num-rollout 7 --prompt-data /data.jsonl@[0:4] --input-key q --rollout-batch-size 4
--n-samples-per-prompt 2 --over-sampling-batch-size 6 --rollout-max-response-len 32 --rollout-temperature 0.7
--rollout-stop </s> --max-turns 5 --reward-key score --custom-rm-path my.rm --group-rm --kl-loss-coef 0.1
--custom-generate-function-path my.gen --rollout-sample-hook-path my.hook --rollout-shuffle --eps-clip 0.1
--eval-prompt-data dev /dev.jsonl --adam-beta1 0.8 --use-tensorboard --rollout-sample-filter-path my.filter
"""


@pytest.fixture(scope="module")
def args():
    config = load_config([], FLAGS.split()).config
    return make_args(config, model=Path("/models/tiny"), router=("127.0.0.1", 4321))


def test_flags_are_read_back_under_their_names(args):
    assert (args.rollout_batch_size, args.n_samples_per_prompt, args.global_batch_size) == (4, 2, 8)
    assert (args.rollout_max_response_len, args.rollout_temperature) == (32, 0.7)
    assert (args.rollout_stop, args.rollout_stop_token_ids) == (["</s>"], None)
    assert (args.prompt_data, args.input_key, args.label_key) == ("/data.jsonl@[0:4]", "q", "label")
    assert (args.num_rollout, args.max_turns, args.reward_key) == (7, 5, "score")
    assert (args.adam_beta1, args.eps_clip, args.eps_clip_high) == (0.8, 0.1, 0.1)


def test_flags_that_are_translated_are_translated_back(args):
    assert (args.custom_rm_path, args.rm_type, args.group_rm) == ("my.rm", None, True)
    assert (args.custom_generate_function_path, args.rollout_sample_hook_path) == ("my.gen", ["my.hook"])
    assert (args.rollout_sample_filter_path, args.buffer_filter_path) == ("my.filter", None)
    assert (args.over_sampling_batch_size, args.rollout_shuffle, args.use_kl_loss) == (6, True, True)
    assert args.eval_prompt_data == ["dev", "/dev.jsonl"]
    assert (args.use_tensorboard, args.use_wandb) == (True, False)


def test_where_the_model_is_and_where_it_answers(args):
    assert args.hf_checkpoint == "/models/tiny"
    assert (args.sglang_router_ip, args.sglang_router_port) == ("127.0.0.1", 4321)


def test_what_holds_of_every_run_is_there(args):
    assert (args.partial_rollout, args.colocate, args.offload_train) == (False, True, False)
    assert (args.tensor_model_parallel_size, args.rollout_num_gpus_per_engine) == (1, 1)


def test_a_name_that_strop_does_not_have_is_an_error_that_names_it(args):
    with pytest.raises(AttributeError, match="as far as strop has them' object has no attribute 'micro_bat"):
        _ = args.micro_batch_size
    assert getattr(args, "router_policy", None) is None


def test_setting_is_refused(args):
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'lr'"):
        args.lr = 1.0
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'mine'"):
        args.mine = 1


def test_without_an_endpoint_there_is_no_address():
    config = load_config([], FLAGS.split()).config
    with pytest.raises(AttributeError, match="sglang_router_ip"):
        _ = make_args(config, model=Path("/m"), router=None).sglang_router_ip


def test_what_a_function_changes_in_it_changes_no_run():
    config = load_config([], [*FLAGS.split(), "--apply-chat-template-kwargs", '{"a": 1}']).config
    made = make_args(config, model=Path("/m"), router=None)
    made.apply_chat_template_kwargs["b"] = 2
    assert config.prompts.chat_template_kwargs == {"a": 1}
