"""The numbers of a training step: losses, ratios, values, and how far sampler and trainer are apart."""

from strop.telemetry.declared import Declared


def trained() -> tuple[Declared, ...]:
    weighted, weights = "weight × value of the trained tokens", "their weights (algo.aggregation)"
    return (
        Declared("train/updates", "updates", "optimizer updates made", "sum", "updates"),
        Declared("train/skipped_updates", "updates", "left out: not finite", "sum", "updates"),
        Declared("train/tokens", "tokens", "computed, prompts included", "sum", "tokens"),
        Declared("train/lr", "1", "learning rate of the last update", "last", "learning rate"),
        Declared(
            "train/loss",
            "loss",
            "whole loss of an update",
            "mean",
            "losses, each over its whole update",
            "updates",
        ),
        Declared(
            "train/grad_norm",
            "norm",
            "gradient norm before clipping",
            "mean",
            "norms of the updates",
            "updates",
        ),
        Declared(
            "train/pg_loss",
            "loss",
            "policy-gradient part of the loss",
            "mean",
            "its sums over whole updates",
            "updates",
        ),
        Declared("train/entropy", "nats", "of the distribution at a token", "mean", weighted, weights),
        Declared("train/ppo_kl", "nats", "old − new log-prob", "mean", weighted, weights),
        Declared("train/kl_loss", "nats", "estimate of KL to the reference", "mean", weighted, weights),
        Declared(
            "train/opd_kl",
            "nats",
            "KL to the teachers: of the sampled tokens, or exact (algo.teacher.form)",
            "mean",
            weighted,
            weights,
        ),
        Declared("train/clip_frac_low", "share", "ratios clipped below", "mean", weighted, weights),
        Declared("train/clip_frac_high", "share", "ratios clipped above", "mean", weighted, weights),
        Declared("train/pg_clipfrac", "share", "ratios clipped", "mean", weighted, weights),
    )


def valued() -> tuple[Declared, ...]:
    """Of a critic: `algo.advantage = "gae"`."""
    weighted, weights = "weight × value of the trained tokens", "their weights (algo.aggregation)"
    tokens = "trained tokens"
    return (
        Declared(
            "train/value_loss", "loss", "of the critic", "mean", "its sums over whole updates", "updates"
        ),
        Declared("train/value_clip_frac", "share", "values held back by clipping", "mean", weighted, weights),
        Declared("train/value_mean", "reward", "expected at a token", "mean", "values", tokens),
        Declared("train/return_mean", "reward", "earned from a token on", "mean", "returns", tokens),
        Declared(
            "train/explained_variance",
            "share",
            "of the returns' variance, by the values of the start of the step",
            "mean",
            "1 − Var(return − value)",
            "Var(return)",
        ),
        Declared("train/critic_lr", "1", "learning rate of its last update", "last", "learning rate"),
        Declared(
            "train/critic_grad_norm",
            "norm",
            "gradient norm of the critic before clipping",
            "mean",
            "norms of the updates",
            "updates",
        ),
        Declared(
            "train/critic_skipped_updates", "updates", "of the critic, left out: not finite", "sum", "updates"
        ),
    )


def off_policy() -> tuple[Declared, ...]:
    weighted, weights = "weight × value of the trained tokens", "their weights (algo.aggregation)"
    both = "tokens with both log-probs"
    left_out = "tokens left out as off-policy"
    return (
        Declared("train/correction_weight", "1", "off-policy weight of the loss", "mean", weighted, weights),
        Declared(
            "train/correction_clip_frac", "share", "off-policy weights clipped", "mean", weighted, weights
        ),
        Declared("train/correction_reject_frac", "share", left_out, "mean", weighted, weights),
        Declared("train/opsm_frac", "share", "tokens masked by algo.opsm_delta", "mean", weighted, weights),
        Declared(
            "train/train_rollout_logprob_abs_diff",
            "nats",
            "how far the trainer's log-prob is from the sampler's",
            "mean",
            "|old − behavior|",
            both,
        ),
        Declared(
            "train/train_rollout_logprob_abs_diff_max", "nats", "largest of these", "max", "|old − behavior|"
        ),
        Declared(
            "train/mismatch_k1",
            "nats",
            "estimate of KL(sampler ‖ trainer)",
            "mean",
            "−d with d = old − behavior",
            both,
        ),
        Declared(
            "train/mismatch_k3",
            "nats",
            "estimate of KL(sampler ‖ trainer)",
            "mean",
            "e^d − 1 − d with d = old − behavior",
            both,
        ),
        Declared("train/mismatch_clip_frac", "share", "ratios w above 2", "mean", "ratios above 2", both),
        Declared(
            "train/mismatch_ess",
            "share",
            "effective sample size of the ratios w = e^(old − behavior)",
            "mean",
            "(Σw)² / Σw²",
            both,
        ),
    )
