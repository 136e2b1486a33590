"""Every loss and every advantage by the keys that choose it: presets, and each value of each choice once."""

import numpy as np

from strop.config.algo import Algo, Correction
from strop.config.offline import SCORING, SHAPES, Preference
from strop.config.presets import PRESETS
from strop.config.reward_model import RewardModel
from strop.config.teacher import Teacher


def of_preset(name):
    """Defaults of `[algo]` alone; those of other sections concern no formula."""
    section = {}
    for key, value in PRESETS[name].items():
        first, *inner, last = key.split(".")
        if first == "algo":
            place = section
            for part in inner:
                place = place.setdefault(part, {})
            place[last] = value
    return Algo.model_validate({"type": name, **section})


def own_advantage(batch):
    """Of a user: what no untrained token may see."""
    place_N = np.arange(batch.num_tokens) - batch.offsets[batch.sample_of_token]
    return batch.spread(batch.rewards + 0.5) + place_N % 3


def own_loss(inputs):
    """Of a user: asks for the sum of a sample."""
    gap_N = inputs.sums(inputs.logp_N - inputs.old_N).clamp(-2, 2)
    return -inputs.advantage_N * inputs.logp_N * gap_N.exp()


GSPO = {"aggregation": "seq_mean_token_mean", "clip_low": 0.1, "clip_high": 0.2}
TAUGHT = {"advantage": "none"}
CASES = {
    **{f"recipe {name}": of_preset(name) for name in PRESETS if of_preset(name).objective not in SCORING},
    "opd, sampled": Algo(**TAUGHT, teacher=Teacher(model="m", coef=0.5)),
    "opd, full": Algo(**TAUGHT, teacher=Teacher(model="m", form="full")),
    "opd, top k, beside rewards": Algo(teacher=Teacher(model="m", form="top_k", coef=0.3), entropy_coef=0.1),
    "grpo of the paper": Algo(aggregation="seq_mean_token_mean", clip_high=0.2, kl_loss_coef=0.04),
    "sums and dual clip": Algo(aggregation="seq_mean_token_sum", dual_clip=1.5),
    "gspo by token": Algo(policy_loss="gspo_token", advantage="returns", gamma=0.9, **GSPO),
    "gspo whose advantages differ": Algo(policy_loss="gspo", advantage="returns", gamma=0.8, **GSPO),
    "cispo with two bounds": Algo(policy_loss="cispo", advantage="rank"),
    "reinforce++ with kl": Algo(advantage="returns", whiten="bessel", gamma=0.9, kl_coef=0.1),
    "a baseline with kl": Algo(normalize_std=False, whiten="population", kl_coef=0.1, kl_type="k2"),
    "gae to the end": Algo(advantage="gae", gamma=0.99, lambd=1.0, kl_coef=0.05, kl_type="k3"),
    "gae that goes on": Algo(advantage="gae", whiten="bessel", critic={"bootstrap": True}),
    "kl k3+ in the reward": Algo(kl_coef=0.1, kl_type="k3+", whiten="bessel"),
    "kl low_var in the reward": Algo(kl_coef=0.1, kl_type="low_var_kl", old="behavior"),
    "behavior as old": Algo(old="behavior", opsm_delta=0.1),
    "nothing but entropy": Algo(advantage="none", entropy_coef=0.2),
    "no truncated": Algo(mask_truncated=True, advantage="leave_one_out", opsm_delta=0.0),
    "remax with kl": Algo(advantage="greedy", kl_loss_coef=0.1, kl_unbiased=True, kl_loss_type="low_var_kl"),
    "steps": Algo(advantage="steps", kl_coef=0.1, policy_loss="gspo_token", **GSPO),
    "turns": Algo(advantage="turns", gamma=0.9, whiten="bessel", mask_truncated=True),
    "one's own": Algo(advantage="layout_cases:own_advantage", policy_loss="layout_cases:own_loss"),
    **{
        f"kl {kind} in the loss, {'unbiased' if unbiased else 'plain'}": Algo(
            kl_loss_coef=0.1, kl_loss_type=kind, kl_unbiased=unbiased
        )
        for kind in ("k1", "k2", "k3", "low_var_kl", "k3+")
        for unbiased in (False, True)
    },
    **{
        f"{kind} at level {level}{', normalized' if normalize else ''}": Algo(
            correction=Correction(type=kind, level=level, normalize=normalize)
        )
        for kind in ("tis", "mis", "icepop", "decoupled")
        for level in ("token", "sequence", "geometric")
        for normalize in (False, True)
    },
    **{
        f"rejection at level {level}": Algo(correction=Correction(reject=level, veto=1e-2), dual_clip=2.0)
        for level in ("token", "sequence", "geometric")
    },
    **{f"objective {name}": Algo(objective=name) for name in SHAPES if name not in SCORING},
    "rows by sample": Algo(objective="nll", aggregation="seq_mean_token_mean"),
    "smoothed dpo with nll": Algo(
        objective="dpo", preference=Preference(label_smoothing=0.1, nll_weight=0.3, beta=0.5)
    ),
    "robust dpo": Algo(objective="robust_dpo", preference=Preference(label_smoothing=0.2)),
    "ipo of sums": Algo(objective="ipo", preference=Preference(mean_logp=False)),
    "kto that weighs": Algo(
        objective="kto", preference=Preference(beta=0.7, desirable_weight=2.0, undesirable_weight=0.5)
    ),
    "simpo with nll": Algo(objective="simpo", preference=Preference(nll_weight=1.0, beta=2.0)),
}
SCORES = {
    **{name: Algo(objective=name) for name in SCORING},
    "recipe reward_model": of_preset("reward_model"),
    "bradley_terry, centred": Algo(objective="bradley_terry", reward_model=RewardModel(centering=0.1)),
    "bradley_terry, margins": Algo(
        objective="bradley_terry", reward_model=RewardModel(margin_field="margin", centering=0.02)
    ),
    "bradley_terry, per token": Algo(
        objective="bradley_terry", reward_model=RewardModel(per_token=True, centering=0.1)
    ),
}
"""Reward models: losses of scores."""
