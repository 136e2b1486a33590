"""Every flag of slime's that no key of strop answers to, and what strop says to it.

slime passes flags through to Megatron and SGLang and ignores misspelt ones; strop names each. Data only: the
flags that do set something are on the keys (`tree.py`) and in `slime.py`.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Answer:
    """One answer for several flags."""

    flags: str
    """Separated by blanks; a trailing `*` stands for every flag that begins so."""
    text: str
    """What follows `--flag: ` in the message."""
    holds: tuple[str, ...] = ()
    """Values that ask for what strop does anyway ("" is the bare flag): these are accepted."""


LATER = "not supported yet"
SHAPE = "strop reads the architecture from the checkpoint's config.json; remove the flag"
ONE_DEVICE = f"{LATER}: a run is one process on one device; remove the flag"
PACKED = "strop packs micro-batches by tokens: --train.max_tokens_per_device; remove the flag"
NO_MEGATRON = "of Megatron's, which is not supported yet; remove the flag"
NO_SERVER = f"{LATER}: the engine is in this process, there is no server or router; remove the flag"
SIGNATURE = f"{LATER}: functions with slime's signature"
SINKS = f"{LATER}: metrics go to metrics.jsonl in the run directory and to --telemetry.sinks; remove the flag"
RESUMES = "the run directory holds its own checkpoints: continue a run with --resume; remove the flag"
EVAL_SAME = f"{LATER}: evaluation uses"
DTYPE = "use --train.dtype bfloat16 and --engine.dtype bfloat16"
SMALLER = "lower --train.max_tokens_per_device to save memory; remove the flag"

CLUSTER = (
    Answer("--actor-num-nodes --rollout-num-gpus-per-engine", ONE_DEVICE, holds=("1",)),
    Answer("--actor-num-gpus-per-node --num-gpus-per-node --rollout-num-gpus", ONE_DEVICE, holds=("1",)),
    Answer("--colocate", "takes no value: trainer and engine always share the device", holds=("",)),
    Answer(
        "--offload --offload-train --offload-rollout", f"{LATER}: trainer and engine share one set of weights"
    ),
    Answer("--no-offload --no-offload-train --no-offload-rollout", "takes no value", holds=("",)),
    Answer("--distributed-backend --distributed-timeout-minutes --train-env-vars", ONE_DEVICE),
    Answer("--train-backend", "the trainer is --train.backend local; Megatron is not supported yet"),
    Answer("--use-distributed-post --http-proxy", NO_SERVER),
)

SYNC = (
    Answer("--update-weight-mode", f"{LATER}: weights are shared (--sync.transport share)", holds=("full",)),
    Answer("--update-weight-transport", "weights are shared: --sync.transport share; remove the flag"),
    Answer("--update-weights-interval", f"{LATER}: weights are new after every step", holds=("1",)),
    Answer(
        "--update-weight-*", "weights are shared (--sync.transport share), nothing is sent; remove the flag"
    ),
    Answer(
        "--custom-update-weight-post-write-path --check-weight-update-equal", f"{LATER}: weights are shared"
    ),
    Answer("--release-train --keep-old-actor", f"{LATER}: trainer and engine share one set of weights"),
    Answer("--qwen-gdn-backend --allgather-cp --freeze-indexer", LATER),
    Answer("--custom-model-provider-path --model-name", SHAPE),
    Answer("--recompute-loss-function --log-probs-chunk-size", f"log-probs are always chunked; {SMALLER}"),
    Answer("--only-train-params-name-list --freeze-params-name-list", f"{LATER}: every weight is trained"),
)

ROLLOUT = (
    Answer(
        "--rollout-function-path --eval-function-path",
        f"{LATER}: --custom-generate-function-path replaces the episode, the loop around it is strop's",
        holds=("slime.rollout.sglang_rollout.generate_rollout",),
    ),
    Answer("--rollout-skip-special-tokens", f"{LATER}: samples are token ids, text is a view"),
    Answer(
        "--partial-rollout --mask-offpolicy-in-partial-rollout",
        f"{LATER}: a surplus group is dropped by name",
    ),
    Answer("--async-buffer-size", f"{LATER}: prefetching needs buffer.staleness > 0"),
    Answer(
        "--rollout-data-postprocess-path",
        f"{LATER}: a function on the trainer; --rollout-sample-hook-path sees every sample",
    ),
    Answer(
        "--custom-rollout-log-function-path --custom-eval-rollout-log-function-path",
        f"{LATER}: metrics.jsonl and samples/ in the run directory hold what is logged; remove the flag",
    ),
    Answer("--rollout-data-transport", ONE_DEVICE),
    Answer("--rollout-external-engine-addrs --prefill-num-servers", NO_SERVER),
    Answer("--use-fault-tolerance --rollout-health-check-*", NO_SERVER),
    Answer("--rollout-buffer-url --fetch-trajectory-retry-times --rollout-task-type", NO_SERVER),
    Answer("--min-batch-collection-ratio", "slime never reads it; --rollout.over_sample starts more groups"),
)

DATA = (
    Answer("--num-epoch", f"{LATER}: say how many steps with --loop.steps"),
    Answer(
        "--disable-rollout-global-dataset",
        f"{LATER}: a sample needs a prompt; use --prompts.source file.py:name or --data-source-path",
    ),
    Answer("--multimodal-keys", f"{LATER}: prompts are text"),
    Answer("--start-rollout-id", RESUMES),
    Answer("--micro-batch-size --balance-data --balance-by-flops --data-pad-size-multiplier", PACKED),
    Answer(
        "--use-dynamic-batch-size", "takes no value: micro-batches are always packed by tokens", holds=("",)
    ),
    Answer("--log-probs-max-tokens-per-gpu", PACKED),
    Answer("--loss-mask-type", f"{LATER}: the mask is what the policy sampled, never a template rule"),
)

EVALUATION = (
    Answer("--skip-eval-before-train", f"{LATER}: data sets are evaluated at the start and at the end"),
    Answer("--eval-max-context-len", f"{EVAL_SAME} rollout.max_context_tokens"),
    Answer("--eval-max-prompt-len", f"{LATER}: no held-out prompt is left out; shorten the file"),
    Answer("--eval-reward-key", f"{EVAL_SAME} reward.score_key"),
    Answer("--eval-min-new-tokens", LATER),
)

CHECKPOINTS = (
    Answer("--save", "use --store.dir: checkpoints are in the run directory"),
    Answer("--load --ckpt-step --no-load-optim --no-load-rng --finetune", RESUMES),
    Answer("--initial-megatron-checkpoint", "use --model with a directory in Hugging Face's form"),
    Answer(
        "--ref-load --ref-ckpt-step", "the reference is the model that the run began with; remove the flag"
    ),
    Answer("--ref-update-interval", f"{LATER}: the reference stays the model that the run began with"),
    Answer(
        "--async-save --no-save-optim",
        "checkpoints are whole, so that a resumed run is equal; remove the flag",
    ),
    Answer("--save-hf", "checkpoints hold the model in Hugging Face's form; see --store.checkpoint_every"),
)

ALGORITHM = (
    Answer("--critic-*", "see --algo.critic.model, --algo.critic.lr and the other keys there"),
    Answer("--use-critic", "--algo.type ppo implies it, as in slime; remove the flag"),
    Answer("--loss-type", f"{LATER}: only the policy loss", holds=("policy_loss",)),
    Answer("--custom-loss-function-path", f"{SIGNATURE}; --algo.policy_loss file.py:name takes strop's"),
    Answer("--custom-pg-loss-reducer-function-path", f"{SIGNATURE}; see --algo.aggregation"),
    Answer("--custom-advantage-function-path", f"{SIGNATURE}; --algo.advantage file.py:name takes strop's"),
    Answer("--disable-compute-advantages-and-returns", f"{LATER}: only the policy loss"),
    Answer("--use-rollout-entropy", f"{LATER}: the entropy is measured in the training pass"),
    Answer("--reset-optimizer-states --use-stateless-adam", f"{LATER}: AdamW keeps its moments"),
    Answer(
        "--get-mismatch-metrics", "takes no value: train/mismatch_… is measured on every step", holds=("",)
    ),
    Answer(
        "--custom-tis-function-path",
        f"{SIGNATURE}; --algo.correction.type and --algo.correction.reject choose from the known ones",
    ),
    Answer("--use-rollout-correction --mis-*", "see --algo.correction.type mis; remove the flag"),
    Answer(
        "--true-on-policy-mode",
        f"{LATER} by this name: engine and trainer agree to 1e-4 when both are float32",
    ),
    Answer("--use-routing-replay --use-rollout-routing-replay", f"{LATER}: mixture-of-experts models"),
    Answer(
        "--opd-type",
        f"{LATER}: a teacher behind a server; it is a model beside the trainer: --opd-teacher-load DIRECTORY",
        holds=("megatron",),
    ),
    Answer(
        "--opd-teacher-ckpt-step", "name the checkpoint itself: --opd-teacher-load RUN/checkpoints/step-N"
    ),
    Answer("--teacher-* --megatron-server-* --no-megatron-server-warmup", f"{LATER}: teacher servers"),
    Answer(
        "--mtp-num-layers --mtp-loss-scaling-factor --enable-mtp-training", f"{LATER}: multi-token prediction"
    ),
)

LOGGING = (
    Answer(
        "--wandb-key --wandb-host",
        "strop takes no secrets; log in with `wandb login`, or keep --wandb-mode offline and `wandb sync`",
    ),
    Answer("--wandb-dir --tb-project-name", "sinks write into the run directory; remove the flag"),
    Answer("--tb-experiment-name", "runs are named by --name; remove the flag"),
    Answer("--disable-wandb-random-suffix", "takes no value: names get no suffix", holds=("",)),
    Answer(
        "--wandb-always-use-train-step", "takes no value: the step is the x-axis of everything", holds=("",)
    ),
    Answer("--wandb-run-id", f"{LATER}: a resumed run goes on in its own files; remove the flag"),
    Answer("--log-multi-turn --log-passrate --log-reward-category --log-correct-samples", SINKS),
    Answer("--debug-rollout-only --debug-train-only", f"{LATER}: rollout and training run together"),
    Answer("--load-debug-rollout-data --load-debug-rollout-data-subsample --load-forge-rollout-data", LATER),
    Answer(
        "--save-debug-rollout-data --save-debug-train-data --dump-details",
        "samples with their tokens are always written to samples/ in the run directory; remove the flag",
    ),
    Answer(
        "--memory-snapshot-dir --memory-snapshot-num-steps --memory-recorder --record-memory-history", LATER
    ),
    Answer("--profile-target", f"{LATER}: spans are written to trace.json in the run directory"),
    Answer("--ci-*", "strop's checks are its tests; remove the flag"),
    Answer(
        "--custom-config-path --megatron-config-path",
        "give the file as a second run file: RUN.toml MORE.toml",
    ),
)

REWARD = (Answer("--custom-reward-post-process-path --custom-convert-samples-to-train-data-path", SIGNATURE),)

MODEL_SHAPE = (
    Answer(
        "--num-layers --hidden-size --ffn-hidden-size --num-attention-heads --group-query-attention "
        "--num-query-groups --kv-channels --vocab-size --make-vocab-size-divisible-by --padded-vocab-size "
        "--normalization --norm-epsilon --swiglu --disable-bias-linear --add-qkv-bias --qk-layernorm "
        "--untie-embeddings-and-output-weights --position-embedding-type --use-rotary-position-embeddings "
        "--rotary-base --rotary-percent --rotary-scaling-factor --rotary-interleaved --use-rope-scaling "
        "--no-rope-fusion --max-position-embeddings --apply-layernorm-1p --attention-output-gate "
        "--use-gated-attention --post-self-attn-layernorm --post-mlp-layernorm --spec",
        SHAPE,
    ),
    Answer(
        "--multi-latent-attention --q-lora-rank --kv-lora-rank --qk-head-dim --qk-pos-emb-head-dim "
        "--v-head-dim --mscale --mscale-all-dim --index-*",
        SHAPE,
    ),
    Answer("--num-experts --moe-*", SHAPE),
    Answer(
        "--seq-length", "sequences have their own lengths: --rollout.max_response_tokens; remove the flag"
    ),
)

MEGATRON = (
    Answer(
        "--tensor-model-parallel-size --pipeline-model-parallel-size --context-parallel-size "
        "--expert-model-parallel-size --expert-tensor-parallel-size",
        ONE_DEVICE,
        holds=("1",),
    ),
    Answer(
        "--sequence-parallel --decoder-first-pipeline-num-layers --decoder-last-pipeline-num-layers",
        ONE_DEVICE,
    ),
    Answer("--recompute-granularity --recompute-method --recompute-num-layers", f"{LATER}: {SMALLER}"),
    Answer(
        "--optimizer-cpu-offload --overlap-cpu-optimizer-d2h-h2d --use-precision-aware-optimizer", NO_MEGATRON
    ),
    Answer("--use-distributed-optimizer", ONE_DEVICE),
    Answer("--optimizer", f"{LATER}: the optimizer is AdamW", holds=("adam",)),
    Answer("--min-lr", f"{LATER}: linear and cosine schedules end at 0", holds=("0",)),
    Answer("--lr-warmup-fraction --lr-warmup-samples", "use --train.optim.warmup, in updates"),
    Answer("--lr-warmup-init --lr-decay-iters --lr-decay-samples", f"{LATER}: see --train.optim.schedule"),
    Answer("--no-check-for-nan-in-loss-and-grad", "use --train.on_nan skip"),
    Answer("--attention-dropout --hidden-dropout", f"{LATER}: there is no dropout", holds=("0",)),
    Answer(
        "--accumulate-allreduce-grads-in-fp32 --attention-softmax-in-fp32",
        "takes no value: gradients and softmax are float32",
        holds=("",),
    ),
    Answer("--attention-backend --deterministic-mode --no-gradient-accumulation-fusion", NO_MEGATRON),
    Answer("--bf16", DTYPE),
    Answer("--fp16", f"{LATER}: {DTYPE}"),
    Answer("--fp8-format --fp8-recipe --fp8-param-gather", f"{LATER}: {DTYPE}"),
    Answer("--custom-megatron-* --megatron-*", NO_MEGATRON),
)

SERVERS = (
    Answer("--sglang-tp-size", f"{LATER}: the engine runs on one device; strop sets parallelism itself"),
    Answer("--sglang-mem-fraction-static", f"{LATER}: the KV cache is --engine.max_tokens"),
    Answer("--sglang-context-length", f"{LATER}: the KV cache is --engine.max_tokens"),
    Answer("--sglang-config", NO_SERVER),
    Answer(
        "--sglang-server-concurrency", f"{LATER}: the KV cache (--engine.max_tokens) bounds what runs at once"
    ),
    Answer("--sglang-*", f"{LATER}: SGLang; the engine is --engine.backend local"),
    Answer("--vllm-*", f"{LATER}: vLLM; the engine is --engine.backend local"),
    Answer("--router-*", NO_SERVER),
)

ANSWERS = (
    *CLUSTER,
    *SYNC,
    *ROLLOUT,
    *DATA,
    *EVALUATION,
    *CHECKPOINTS,
    *ALGORITHM,
    *LOGGING,
    *REWARD,
    *MODEL_SHAPE,
    *MEGATRON,
    *SERVERS,
)

CAUTIONS = {
    "--apply-chat-template": "without it slime renders no template; strop does, by default",
    "--input-key": "slime's default is input",
    "--label-key": "slime has no default",
    "--rollout-shuffle": "without it slime keeps the file's order; strop shuffles, by default",
    "--n-samples-per-prompt": "slime's default is 1",
    "--rollout-max-response-len": "counts tool tokens too",
    "--eps-clip": "sets clip_high too unless that is given, as in slime; strop's defaults are 0.2, 0.28",
    "--kl-loss-type": "slime's default is k1, which has no expected gradient as a loss",
    "--kl-loss-coef": "slime ignores it without --use-kl-loss; strop needs no second flag",
    "--calculate-per-token-loss": "without it slime's loss is seq_mean_token_mean; strop's is token_mean",
    "--advantage-estimator": "a name of slime's, or one of strop's",
    "--opsm-delta": "needs no --use-opsm; the mean is to the sampler's log-probs, as in its paper",
    "--opd-teacher-load": "a model in Hugging Face's form; needs no --use-opd",
    "--kl-coef": "not together with --kl-loss-coef",
    "--lambd": "slime's default is 1",
    "--value-clip": "slime's value loss is twice as large: it leaves out the factor of one half",
    "--eval-temperature": "slime evaluates at --rollout-temperature; strop at 0 (greedy)",
    "--custom-rm-path": "called as slime calls it: (args, sample), with --group-rm (args, samples)",
    "--custom-generate-function-path": "(args, sample, sampling_params) or (args, samples), evaluation too",
    "--rollout-sample-hook-path": "may be given more than once",
    "--buffer-filter-path": "at staleness 0 a buffer holds only what add_samples put there",
    "--seed": "slime's default is 1234",
    "--weight-decay": "Megatron's default is 0.01",
    "--adam-beta2": "Megatron's default is 0.999",
    "--lr-decay-style": "Megatron's default is linear",
    "--lr-warmup-iters": "counts updates, as in Megatron",
}
"""Where a flag's default or meaning is not slime's; `strop config --keys` shows them."""


def answer_for(flag: str) -> Answer | None:
    """The answer to a flag of slime's: by its name, else by the longest beginning."""
    best: tuple[int, Answer] | None = None
    for answer in ANSWERS:
        for name in answer.flags.split():
            length = _match(name, flag)
            if length and (best is None or length > best[0]):
                best = (length, answer)
    return best[1] if best else None


def names() -> list[str]:
    """Every flag answered by its own name."""
    return [name for answer in ANSWERS for name in answer.flags.split() if not name.endswith("*")]


def _match(name: str, flag: str) -> int:
    """How much of `flag` the name matches; 0 is not at all. A full name beats every beginning."""
    if name.endswith("*"):
        return len(name) - 1 if flag.startswith(name[:-1]) else 0
    return len(name) + 1 if flag == name else 0
