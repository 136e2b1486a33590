"""A key, changed, and what a run then says differently."""

# ruff: noqa: E501 (one key a line)

from dataclasses import dataclass


@dataclass(frozen=True)
class Change:
    """`flags` change the key; `both` are given to the unchanged run too."""

    flags: str
    says: str
    """The part of the run that differs: see `run_parts.py`; with a slash in it, a metric."""
    both: str = ""
    file: str = "run.toml"


MIXED = "mixture.toml"
TEXTS, PAIRS, MARKED = "texts.toml", "pairs.toml", "marked.toml"
"""Runs on rows that hold what is trained."""
JUDGE = "--algo.objective bradley_terry"
RANKED = "--algo.objective plackett_luce"
TALKS = "--prompts.rows.messages_key talk"
TASK = "--prompts.files [] --prompts.source mine.py:task"
LOUD = "--train.updates_per_step 2 --train.optim.lr 0.1"
"""Two updates a step with large steps: then probability ratios are clipped."""
TURNS = "--rollout.max_response_tokens 60 --rollout.stop_token_ids " + " ".join(map(str, range(65, 129)))
"""Replies that end, so that an environment is asked."""
LORA = "--train.lora.rank 4"

CORRECTED = "--engine.dtype bfloat16 --algo.correction.type tis"
"""Sampler and trainer are two policies then."""
REJECTED = "--engine.dtype bfloat16 --algo.correction.reject token"

PPO = f"{LOUD} --algo.type ppo"
SHARED = f"{PPO} --algo.critic.shared"
TAUGHT = "--algo.teacher.model ./other"
TAUGHT_BY_TWO = """--algo.teachers '[{model = "./other"}, {model = "./tiny"}]'"""

CHANGES: dict[str, Change] = {
    "name": Change("--name other", "output"),
    "model": Change("--model ./other", "weights"),
    "prompts.files": Change("--prompts.files other.jsonl", "prompts"),
    "prompts.mixture": Change(
        '--prompts.mixture \'[{name = "a", files = ["other.jsonl"]}]\' --prompts.files []', "prompts"
    ),
    "prompts.mixture.name": Change("--prompts.mixture.0.name other", "metadata", file=MIXED),
    "prompts.mixture.weight": Change("--prompts.mixture.0.weight 9", "prompts", file=MIXED),
    "prompts.mixture.files": Change("--prompts.mixture.0.files third.jsonl", "prompts", file=MIXED),
    "prompts.mixture.source": Change(
        "--prompts.mixture.0.files [] --prompts.mixture.0.source mine.py:task", "prompts", file=MIXED
    ),
    "prompts.mixture.options": Change(
        "--prompts.mixture.0.options.size 9",
        "prompts",
        "--prompts.mixture.0.files [] --prompts.mixture.0.source mine.py:task",
        file=MIXED,
    ),
    "prompts.mixture.input_key": Change("--prompts.mixture.0.input_key question", "prompts", file=MIXED),
    "prompts.mixture.label_key": Change("--prompts.mixture.0.label_key answer", "labels", file=MIXED),
    "prompts.mixture.reward": Change("--prompts.mixture.0.reward mine.py:half", "rewards", file=MIXED),
    "prompts.source": Change(TASK, "prompts"),
    "prompts.options": Change("--prompts.options.size 9", "prompts", TASK),
    "prompts.input_key": Change("--prompts.input_key question", "prompts"),
    "prompts.label_key": Change("--prompts.label_key answer", "labels"),
    "prompts.metadata_key": Change("--prompts.metadata_key extra", "metadata"),
    "prompts.metadata_fields": Change("--prompts.metadata_fields question", "metadata"),
    "prompts.template": Change("--prompts.template 'Say {prompt}'", "prompts"),
    "prompts.tool_key": Change("--prompts.tool_key functions", "code"),
    "prompts.chat_template": Change("--prompts.chat_template false", "tokens"),
    "prompts.max_tokens": Change("--prompts.max_tokens 5", "prompts"),
    "prompts.on_bad_row": Change("--prompts.on_bad_row skip", "code", "--prompts.files data.jsonl bad.jsonl"),
    "prompts.rows.messages_key": Change(TALKS, "tokens", file=TEXTS),
    "prompts.rows.response_key": Change("--prompts.rows.response_key answer", "tokens", file=TEXTS),
    "prompts.rows.chosen_key": Change("--prompts.rows.chosen_key better", "tokens", file=PAIRS),
    "prompts.rows.rejected_key": Change("--prompts.rows.rejected_key worse", "tokens", file=PAIRS),
    "prompts.rows.ranked_key": Change("--prompts.rows.ranked_key others", "tokens", RANKED, file=PAIRS),
    "prompts.rows.turns": Change("--prompts.rows.turns last", "weights", TALKS, file=TEXTS),
    "prompts.rows.max_tokens": Change("--prompts.rows.max_tokens 6", "code", file=TEXTS),
    "prompts.rows.on_long": Change(
        "--prompts.rows.on_long truncate", "code", "--prompts.rows.max_tokens 7", file=TEXTS
    ),
    "prompts.shuffle": Change("--prompts.shuffle false", "prompts"),
    "prompts.seed": Change("--prompts.seed 7", "prompts"),
    "env.type": Change("--env.type mine.py:Again", "tokens", TURNS),
    "env.options": Change("--env.options.word yes", "tokens", f"--env.type mine.py:Again {TURNS}"),
    "env.max_turns": Change(
        "--env.max_turns 2",
        "tokens",
        f"--env.type mine.py:Again {TURNS}",
    ),
    "env.timeout_s": Change("--env.timeout_s 0.01", "code", "--env.type mine.py:Slow --rollout.max_tries 1"),
    "engine.dtype": Change("--engine.dtype bfloat16", "behavior"),
    "engine.max_tokens": Change("--engine.max_tokens 64", "code", "--rollout.max_response_tokens 60"),
    "rollout.batch_size": Change("--rollout.batch_size 1", "ledger"),
    "rollout.samples_per_prompt": Change("--rollout.samples_per_prompt 3", "tokens"),
    "rollout.max_response_tokens": Change("--rollout.max_response_tokens 5", "tokens"),
    "rollout.temperature": Change("--rollout.temperature 0.5", "behavior"),
    "rollout.top_p": Change("--rollout.top_p 0.5", "behavior"),
    "rollout.top_k": Change("--rollout.top_k 3", "behavior"),
    "rollout.min_p": Change("--rollout.min_p 0.9", "behavior"),
    "rollout.max_context_tokens": Change("--rollout.max_context_tokens 10", "tokens"),
    "rollout.stop": Change("--rollout.stop a b c d e f g h i", "tokens", "--rollout.max_response_tokens 60"),
    "rollout.stop_token_ids": Change(
        "--rollout.stop_token_ids 65 66 67 68 69 70", "tokens", "--rollout.max_response_tokens 60"
    ),
    "rollout.ignore_eos": Change("--rollout.ignore_eos", "tokens", "--rollout.max_response_tokens 600"),
    "rollout.over_sample": Change("--rollout.over_sample 2", "ledger"),
    "rollout.keep": Change("--rollout.keep mine.py:every_second", "ledger"),
    "rollout.max_tries": Change("--rollout.max_tries 2", "error", "--rollout.keep mine.py:none"),
    "rollout.generate": Change("--rollout.generate mine.py:three_tokens", "tokens"),
    "rollout.hooks": Change("--rollout.hooks mine.py:mark", "metadata"),
    "reward.fn": Change("--reward.fn mine.py:half", "rewards"),
    "reward.weights": Change(
        "--reward.weights.format 2 --reward.options.format.pattern '(?s).*'", "rewards", "--reward.fn exact"
    ),
    "reward.options": Change(
        "--reward.options.share 0.25", "rewards", "--reward.fn format --reward.options.pattern '(?s).*'"
    ),
    "reward.score_key": Change(
        "--reward.score_key other", "code", "--reward.fn mine.py:table --rollout.max_tries 1"
    ),
    "reward.group": Change("--reward.group", "rewards", "--reward.fn mine.py:either"),
    "reward.timeout_s": Change(
        "--reward.timeout_s 0.01", "code", "--reward.fn mine.py:slow --reward.retries 0 --rollout.max_tries 1"
    ),
    "reward.retries": Change(
        "--reward.retries 0", "code", "--reward.fn mine.py:at_second --rollout.max_tries 1"
    ),
    "reward.concurrency": Change("--reward.concurrency 1", "rewards", "--reward.fn mine.py:at_once"),
    "buffer.staleness": Change("--buffer.staleness 1", "code"),
    "algo.type": Change("--algo.type rloo", "advantages"),
    "algo.objective": Change("--algo.objective hinge", "train/loss", file=PAIRS),
    "algo.reward_model.centering": Change("--algo.reward_model.centering 0.5", "weights", JUDGE, file=PAIRS),
    "algo.reward_model.margin_field": Change(
        "--algo.reward_model.margin_field margin", "weights", JUDGE, file=PAIRS
    ),
    "algo.reward_model.per_token": Change("--algo.reward_model.per_token", "weights", JUDGE, file=PAIRS),
    "algo.preference.beta": Change("--algo.preference.beta 0.5", "weights", file=PAIRS),
    "algo.preference.label_smoothing": Change("--algo.preference.label_smoothing 0.2", "weights", file=PAIRS),
    "algo.preference.mean_logp": Change(
        "--algo.preference.mean_logp false", "weights", "--algo.objective ipo", file=PAIRS
    ),
    "algo.preference.target_margin": Change(
        "--algo.preference.target_margin 2", "weights", "--algo.objective simpo", file=PAIRS
    ),
    "algo.preference.odds_weight": Change(
        "--algo.preference.odds_weight 2", "weights", "--algo.objective orpo", file=PAIRS
    ),
    "algo.preference.nll_weight": Change("--algo.preference.nll_weight 1", "weights", file=PAIRS),
    "algo.preference.desirable_weight": Change(
        "--algo.preference.desirable_weight 2", "weights", file=MARKED
    ),
    "algo.preference.undesirable_weight": Change(
        "--algo.preference.undesirable_weight 2", "weights", file=MARKED
    ),
    "algo.advantage": Change("--algo.advantage leave_one_out", "advantages"),
    "algo.gamma": Change("--algo.gamma 0.5", "advantages", "--algo.advantage returns"),
    "algo.lambd": Change("--algo.lambd 0.5", "advantages", PPO),
    "algo.critic.shared": Change("--algo.critic.shared", "weights", PPO),
    "algo.critic.model": Change("--algo.critic.model ./other", "advantages", f"{PPO} --algo.critic.lr 0.1"),
    "algo.critic.lr": Change("--algo.critic.lr 0.01", "advantages", PPO),
    "algo.critic.coef": Change("--algo.critic.coef 5", "weights", SHARED),
    "algo.critic.clip": Change("--algo.critic.clip 1e-3", "weights", SHARED),
    "algo.critic.warmup_steps": Change("--algo.critic.warmup_steps 1", "weights", PPO),
    "algo.critic.bootstrap": Change("--algo.critic.bootstrap", "advantages", f"{PPO} --algo.critic.lr 0.1"),
    "algo.kl_coef": Change("--algo.kl_coef 0.5", "weights", LOUD),
    "algo.kl_type": Change("--algo.kl_type k2", "advantages", f"{LOUD} --algo.kl_coef 0.5"),
    "algo.whiten": Change("--algo.whiten bessel", "advantages"),
    "algo.mask_truncated": Change("--algo.mask_truncated", "weights"),
    "algo.policy_loss": Change("--algo.policy_loss cispo", "weights", LOUD),
    "algo.old": Change("--algo.old behavior", "train/ppo_kl"),
    "algo.kl_unbiased": Change("--algo.kl_unbiased", "weights", f"{LOUD} --algo.kl_loss_coef 0.5"),
    "algo.opsm_delta": Change("--algo.opsm_delta 0", "weights", LOUD),
    "algo.correction.type": Change("--algo.correction.type tis", "train/correction_weight"),
    "algo.correction.level": Change("--algo.correction.level sequence", "train/correction_weight", CORRECTED),
    "algo.correction.low": Change("--algo.correction.low 1.5", "weights", CORRECTED),
    "algo.correction.high": Change("--algo.correction.high 0.7", "weights", CORRECTED),
    "algo.correction.normalize": Change("--algo.correction.normalize", "train/correction_weight", CORRECTED),
    "algo.correction.reject": Change("--algo.correction.reject token", "train/correction_reject_frac"),
    "algo.correction.reject_low": Change("--algo.correction.reject_low 0.9999999", "weights", REJECTED),
    "algo.correction.reject_high": Change("--algo.correction.reject_high 0.9999999", "weights", REJECTED),
    "algo.correction.veto": Change("--algo.correction.veto 0.9999999", "weights"),
    "algo.teacher.model": Change(TAUGHT, "advantages"),
    "algo.teacher.coef": Change("--algo.teacher.coef 0.5", "advantages", TAUGHT),
    "algo.teacher.form": Change("--algo.teacher.form full", "advantages", TAUGHT),
    "algo.teacher.top_k": Change("--algo.teacher.top_k 2", "weights", f"{TAUGHT} --algo.teacher.form top_k"),
    "algo.teacher.beta": Change("--algo.teacher.beta 0.5", "weights", f"{TAUGHT} --algo.teacher.form full"),
    "algo.teacher.hint_key": Change(
        "--algo.teacher.hint_key question", "advantages", f"{TAUGHT} --prompts.metadata_fields question"
    ),
    "algo.teachers": Change(TAUGHT_BY_TWO, "advantages"),
    "algo.teachers.weight": Change("--algo.teachers.0.weight 9", "advantages", TAUGHT_BY_TWO),
    "algo.teachers.sources": Change("--algo.teachers.0.sources nobody", "code", TAUGHT_BY_TWO),
    "algo.normalize_std": Change("--algo.normalize_std false", "advantages"),
    "algo.aggregation": Change("--algo.aggregation seq_mean_token_sum", "train/loss", LOUD),
    "algo.clip_low": Change("--algo.clip_low 0.001", "weights", LOUD),
    "algo.clip_high": Change("--algo.clip_high 0.001", "weights", LOUD),
    "algo.dual_clip": Change("--algo.dual_clip 1.001", "weights", LOUD),
    "algo.kl_loss_coef": Change("--algo.kl_loss_coef 0.5", "weights", LOUD),
    "algo.kl_loss_type": Change("--algo.kl_loss_type k2", "weights", f"{LOUD} --algo.kl_loss_coef 0.5"),
    "algo.entropy_coef": Change("--algo.entropy_coef 0.5", "weights"),
    "train.batch_size": Change("--train.batch_size 2", "code"),
    "train.updates_per_step": Change("--train.updates_per_step 2", "weights"),
    "train.dtype": Change("--train.dtype bfloat16", "weights"),
    "train.optim.lr": Change("--train.optim.lr 0.01", "weights"),
    "train.optim.betas": Change("--train.optim.betas 0.5 0.9", "weights"),
    "train.optim.eps": Change("--train.optim.eps 0.1", "weights"),
    "train.optim.weight_decay": Change("--train.optim.weight_decay 0.5", "weights"),
    "train.optim.clip": Change("--train.optim.clip 1e-9", "weights"),
    "train.optim.schedule": Change("--train.optim.schedule linear", "weights"),
    "train.optim.warmup": Change("--train.optim.warmup 2", "weights"),
    "train.lora.rank": Change(LORA, "weights"),
    "train.lora.alpha": Change("--train.lora.alpha 64", "weights", LORA),
    "train.lora.targets": Change("--train.lora.targets q_proj", "weights", LORA),
    "eval.every": Change("--eval.every 1", "evals"),
    "eval.datasets": Change("--eval.datasets []", "evals"),
    "eval.datasets.name": Change("--eval.datasets.0.name other", "evals"),
    "eval.datasets.files": Change("--eval.datasets.0.files other.jsonl", "eval samples"),
    "eval.datasets.source": Change(
        "--eval.datasets.0.files [] --eval.datasets.0.source mine.py:task", "eval samples"
    ),
    "eval.datasets.options": Change(
        "--eval.datasets.0.options.size 9",
        "eval samples",
        "--eval.datasets.0.files [] --eval.datasets.0.source mine.py:task",
    ),
    "eval.datasets.n": Change("--eval.datasets.0.n 1", "eval samples"),
    "eval.datasets.input_key": Change("--eval.datasets.0.input_key question", "eval samples"),
    "eval.datasets.label_key": Change("--eval.datasets.0.label_key answer", "eval samples"),
    "eval.datasets.tool_key": Change("--eval.datasets.0.tool_key functions", "code"),
    "eval.datasets.reward": Change("--eval.datasets.0.reward mine.py:half", "eval samples"),
    "eval.datasets.samples_per_prompt": Change(
        "--eval.datasets.0.samples_per_prompt 2 --eval.datasets.0.temperature 1", "eval samples"
    ),
    "eval.datasets.pass_threshold": Change(
        "--eval.datasets.0.pass_threshold 99",
        "evals",
        "--eval.datasets.0.samples_per_prompt 2 --eval.datasets.0.temperature 1",
    ),
    "eval.datasets.temperature": Change("--eval.datasets.0.temperature 1", "eval samples"),
    "eval.datasets.top_p": Change(
        "--eval.datasets.0.top_p 0.1", "eval samples", "--eval.datasets.0.temperature 1"
    ),
    "eval.datasets.top_k": Change(
        "--eval.datasets.0.top_k 2", "eval samples", "--eval.datasets.0.temperature 1"
    ),
    "eval.datasets.min_p": Change(
        "--eval.datasets.0.min_p 0.9", "eval samples", "--eval.datasets.0.temperature 1"
    ),
    "eval.datasets.max_response_tokens": Change("--eval.datasets.0.max_response_tokens 3", "eval samples"),
    "eval.datasets.stop": Change(
        "--eval.datasets.0.stop a b c d e f g h i",
        "eval samples",
        "--eval.datasets.0.temperature 1 --eval.datasets.0.max_response_tokens 60",
    ),
    "store.dir": Change("--store.dir elsewhere", "directory"),
    "store.checkpoint_every": Change("--store.checkpoint_every 1", "checkpoints", "--store.keep 5"),
    "store.keep": Change("--store.keep 5", "checkpoints", "--store.checkpoint_every 1"),
    "runtime.threads": Change("--runtime.threads 2", "plan"),
    "telemetry.sinks": Change("--telemetry.sinks tensorboard", "files"),
    "telemetry.show_sample_every": Change("--telemetry.show_sample_every 1", "output"),
    "loop.steps": Change("--loop.steps 1", "ledger"),
    "loop.seed": Change("--loop.seed 7", "tokens"),
}

ELSEWHERE = {
    "prompts.chat_template_kwargs": "tests/unit/render/test_template_variables.py: the tiny model's template takes none",
    "algo.teachers.model": "tests/unit/nn/test_teacher_paths.py: a row is nothing without it",
    "algo.teacher.train_first": "tests/unit/cli/test_teacher_first.py: a teacher takes a run of its own",
    "train.max_tokens_per_device": "tests/unit/train/test_local_trainer.py: changes memory and speed, never the result",
    "train.on_nan": "tests/unit/train/test_local_trainer.py: a gradient must be made to fail",
    "telemetry.wandb.project": "tests/shape/test_options_have_effect.py: without wandb itself",
    "telemetry.wandb.group": "tests/shape/test_options_have_effect.py: without wandb itself",
    "telemetry.wandb.entity": "tests/shape/test_options_have_effect.py: without wandb itself",
    "telemetry.wandb.mode": "tests/shape/test_options_have_effect.py: without wandb itself",
}
"""Keys whose effect is tested where it can be seen."""
