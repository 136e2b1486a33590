"""The keys of `[algo]`: how rewards become gradients, a key for every convention on which frameworks differ.

`algo.type` names a recipe: a set of defaults over these keys (`config/presets.py`), each of which can be set.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import Field

from strop.config.keys import Section, key
from strop.config.offline import Objective, Preference
from strop.config.reward_model import RewardModel
from strop.config.teacher import OneTeacher, Teacher

Function = Annotated[str, Field(min_length=1)]
KlType = Literal["k1", "k2", "k3", "low_var_kl", "k3+"]
WINDOWS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {"tis": (0.0, 2.0), "mis": (0.5, 2.0), "icepop": (0.5, 5.0), "decoupled": (0.0, math.inf)}
)
"""By type of correction: lowest and highest weight, unless given."""


def window_of(kind: str, *, low: float | None, high: float | None) -> tuple[float, float]:
    """Lowest and highest weight of a correction of this type; None: not given."""
    lowest, highest = WINDOWS[kind]
    return lowest if low is None else low, highest if high is None else high


class Correction(Section):
    """Weights that make up for the sampler being another policy than the trainer's at the start of the step:
    exp(old − behavior), detached, times the policy loss. Denominators do not change."""

    type: Literal["none", "tis", "mis", "icepop", "decoupled"] = key("none")
    """`tis`: weights are clipped into [low, high] (truncated importance sampling); `mis`: those outside are
    0; `icepop`: the same with wider bounds (Ring-1T, arXiv:2510.18855); `decoupled`: unbounded
    (arXiv:2110.00641). slime: --use-tis."""
    level: Literal["token", "sequence", "geometric"] = key("token")
    """The weight of a token: its own, the product over its sample, or the geometric mean over it."""
    low: float | None = key(None, slime="--tis-clip-low", ge=0)
    """Unset: 0 for `tis`, 0.5 for `mis` and `icepop`."""
    high: float | None = key(None, slime="--tis-clip", gt=0)
    """Unset: 2 for `tis` and `mis`, 5 for `icepop`."""
    normalize: bool = key(False)
    """Divide by the mean weight of the update's trained tokens; `old` is then scored in a pass of its own."""
    reject: Literal["none", "token", "sequence", "geometric"] = key("none")
    """Leave out tokens whose ratio at this level is outside [reject_low, reject_high]; may stand alone."""
    reject_low: float = key(0.5, ge=0)
    """… lowest ratio that is trained."""
    reject_high: float = key(2.0, gt=0)
    """… and the highest."""
    veto: float | None = key(None, gt=0, lt=1)
    """Leave out a sample in which the ratio of any token is below this; may stand alone."""


class Critic(Section):
    """The value function of `gae`: what is still to be earned, told from the tokens so far."""

    shared: bool = key(False)
    """A head on the policy's own trunk, trained with it in one pass; false: a model of its own."""
    model: Function | None = key(None, path="model")
    """What a model of its own begins as; one that has a value head keeps it. Unset: the run's `model`."""
    lr: float | None = key(None, ge=0)
    """Peak learning rate of a model of its own; unset, as all else of its optimizer: as in `train.optim`."""
    coef: float = key(0.5, gt=0)
    """Of `shared`: weight of the value loss beside the policy loss."""
    clip: float | None = key(0.2, slime="--value-clip", gt=0)
    """The loss is the larger of two: with the value, and with the value kept this near to that of the start
    of the step, in units of reward."""
    warmup_steps: int = key(0, slime="--num-critic-only-steps", ge=0)
    """The first steps train the critic alone."""
    bootstrap: bool = key(False)
    """A response that was cut off at the maximum length is worth what the critic expects from there on,
    beside its reward; false: nothing, as if it had ended."""


class Algo(Section):
    """How rewards become gradients. `type` is a recipe; every other key can be set beside it."""

    type: Literal[
        "grpo",
        "dr_grpo",
        "dapo",
        "gspo",
        "cispo",
        "rloo",
        "remax",
        "reinforce_pp",
        "reinforce_pp_baseline",
        "ppo",
        "sft",
        "dpo",
        "ipo",
        "kto",
        "orpo",
        "simpo",
        "cpo",
        "reward_model",
        "opd",
    ] = key("grpo", slime="--advantage-estimator")
    """A set of defaults for other keys, by name; the page of all keys lists them."""
    objective: Objective = key("reward")
    """What is trained: `reward`: the policy gradient of rewards, which all keys up to `correction` are about;
    `nll`: what rows say (supervised training); the others: what rows prefer, by the losses of DPO
    (arXiv:2305.18290) and its kin; `bradley_terry` (pairs), `plackett_luce` (lists, best first) and
    `regression` (numbers): a reward model, which scores responses as rows do. Rows need neither engine,
    reward nor sync."""
    advantage: Function = key("group", path="plugin")
    """What a sample is worth beside others: `group`: less the mean of its group (arXiv:2402.03300);
    `leave_one_out`: less the mean of the others in it (RLOO, arXiv:2402.14740); `greedy`: less the reward of
    the greedy reply to the same prompt (ReMax, arXiv:2310.10505); `returns`: discounted sums of rewards to
    come, without a baseline (REINFORCE++, arXiv:2501.03262); `gae`: the same against the values of a critic
    (PPO, arXiv:1506.02438); `rank`: its place in the order of the group; `steps`: what its
    steps are worth from each on, standardised among all steps of the group, of a reward that returns them
    (arXiv:2402.03300 §4.1.3); `turns`: `returns` of what steps or turns are worth, where each ends; `none`:
    nothing, where only a teacher counts; or
    `file.py:name` of a function `(batch) ->
    array`, one number a response token."""
    normalize_std: bool = key(True)
    """Of `group`: divide by the group's unbiased standard deviation + 1e-6; false is Dr. GRPO
    (arXiv:2503.20783). slime: --disable-grpo-std-normalization."""
    gamma: float = key(1.0, slime="--gamma", ge=0, le=1)
    """Of `returns`, `turns` and `gae`: discount from one trained token to the next."""
    lambd: float = key(0.95, slime="--lambd", ge=0, le=1)
    """Of `gae`: how far credit reaches beyond the critic's next value; 1: to the end, 0: one token."""
    kl_coef: float = key(0.0, slime="--kl-coef", ge=0)
    """Weight of KL(policy ‖ reference) in the reward of every trained token: with `returns`, `turns` and
    `gae` in what is summed, else taken from the token's advantage."""
    kl_type: KlType = key("k1")
    """Its estimator."""
    whiten: Literal["none", "bessel", "population"] = key("none")
    """Advantages less their mean, by their deviation, over the trained tokens of the whole step: `bessel`:
    its variance is Σ / (n − 1) (slime, verl); `population`: Σ / n (OpenRLHF). slime:
    --normalize-advantages."""
    mask_truncated: bool = key(False)
    """Samples that hit the maximum length are not trained, as if they were not there; their rewards still
    count in baselines (DAPO's overlong filtering)."""
    policy_loss: Function = key("clip", path="plugin")
    """`clip`: PPO's clipped surrogate (arXiv:1707.06347); `gspo`, `gspo_token`: the ratio of the whole sample
    (arXiv:2507.18071), `gspo_token` for advantages that differ within one; `cispo`: clipped weights that keep
    every token's gradient (arXiv:2506.13585); or `file.py:name` of a function `(inputs) -> tensor`, the loss
    of every token."""
    old: Literal["trainer", "behavior"] = key("trainer")
    """What the ratio is to: the trainer's own log-probs at the start of the step, or those that the sampler
    recorded, which saves a pass; then the ratio corrects for the sampler as well.
    slime: --use-rollout-logprobs."""
    aggregation: Literal["token_mean", "seq_mean_token_mean", "seq_mean_token_sum", "seq_sum_const"] = key(
        "token_mean"
    )
    """From per-token losses to one number; all denominators are of the whole update. `token_mean`: DAPO;
    `seq_mean_token_mean`: the original GRPO and slime's default; `seq_sum_const`: Dr. GRPO, with
    `rollout.max_response_tokens` as the constant. slime: --calculate-per-token-loss."""
    clip_low: float = key(0.2, slime="--eps-clip", ge=0, le=1)
    """The probability ratio is clipped below at 1 − this; 1: not at all."""
    clip_high: float = key(0.28, slime="--eps-clip-high", ge=0)
    """… and above at 1 + this (DAPO's clip-higher, arXiv:2503.14476)."""
    dual_clip: float | None = key(None, slime="--eps-clip-c", gt=1)
    """Of `clip`: for negative advantages the loss is at most this × |advantage| (arXiv:1912.09729)."""
    kl_loss_coef: float = key(0.0, slime="--kl-loss-coef", ge=0)
    """Weight of KL(policy ‖ reference) in the loss; the reference is the model that the run began with."""
    kl_loss_type: KlType = key("k3", slime="--kl-loss-type")
    """Its estimator; `low_var_kl` is k3 clamped to ±10, `k3+` has the gradient of k2. `k1` as a loss has no
    expected gradient."""
    kl_unbiased: bool = key(False)
    """Multiply the estimate by the ratio policy / old, gradient and all (DeepSeek-V3.2).
    slime: --use-unbiased-kl."""
    entropy_coef: float = key(0.0, slime="--entropy-coef", ge=0)
    """Weight of the entropy bonus."""
    opsm_delta: float | None = key(None, slime="--opsm-delta", ge=0)
    """Tokens of negative advantage are left out where their sample's mean log-ratio behavior − policy is
    above this (off-policy sequence masking, DeepSeek-V3.2, arXiv:2512.02556). slime: --use-opsm, with
    1e-4."""
    correction: Correction = key(Correction)
    preference: Preference = key(Preference)
    reward_model: RewardModel = key(RewardModel)
    critic: Critic = key(Critic)
    teacher: Teacher = key(Teacher)
    teachers: list[OneTeacher] = key(list)
    """`[[algo.teachers]]` tables: several teachers instead of `algo.teacher.model`, for all prompts or for
    some. What they teach of a prompt is a mean by weight."""

    @property
    def is_taught(self) -> bool:
        """Whether there is a teacher."""
        return self.teacher.model is not None or bool(self.teachers)
