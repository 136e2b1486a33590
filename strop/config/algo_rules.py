"""What must hold between the keys of `[algo]`, and which of them do nothing beside others."""

from collections.abc import Callable, Iterator

from strop.config.algo import window_of
from strop.config.idle import Idle
from strop.config.tree import Config
from strop.config.view import View

BUILT_IN_LOSSES = ("clip", "gspo", "gspo_token", "cispo")
BUILT_IN_ADVANTAGES = ("group", "leave_one_out", "rank", "steps", "greedy", "returns", "turns", "gae", "none")
_OF_GROUPS = ("group", "leave_one_out", "rank", "steps")
"""Advantages that compare the samples of a prompt with one another."""
_OF_SAMPLES = ("gspo", "gspo_token")
"""Policy losses whose ratio is of a whole sample."""


def has_own_critic(config: Config) -> bool:
    """Whether a second model is trained beside the policy."""
    return config.algo.advantage == "gae" and not config.algo.critic.shared


def advice(config: Config) -> Iterator[str]:
    """What is allowed and seldom meant: for a note at the start of a run."""
    algo = config.algo
    if algo.kl_loss_coef > 0 and algo.kl_loss_type == "k1" and not algo.kl_unbiased:
        yield (
            'algo.kl_loss_type = "k1" has no expected gradient as a loss: it only adds noise; use "k3", or '
            "algo.kl_coef, which puts KL into the reward"
        )
    if algo.policy_loss == "cispo" and algo.clip_low < 1:
        yield (
            f"algo.clip_low = {algo.clip_low:g} bounds CISPO's weights from below; its paper does not: "
            "algo.clip_low = 1"
        )
    if _rewards_nothing(config):
        yield (
            'reward.fn = "none" gives every sample 0, and there is no teacher: unless rows name a reward, '
            "nothing is learnt; set reward.fn"
        )


def _rewards_nothing(config: Config) -> bool:
    """Whether only a row could still reward what is played."""
    played = config.algo.objective == "reward" and config.loop.steps != 0 and not config.algo.is_taught
    is_plain = config.env.type == "single_turn" and config.rollout.generate is None
    return played and is_plain and config.reward.fn == "none" and not config.reward.weights


def _groups_of_one(view: View) -> Iterator[str]:
    key = "rollout.samples_per_prompt"
    is_played = view.config.algo.objective == "reward"
    if is_played and view.value(key) == 1 and view.config.algo.advantage in _OF_GROUPS:
        yield (
            f"{view.at(key)}: {key} = 1 with {view.said('algo.advantage')} learns nothing: the advantage is "
            "relative to the group, so that of one sample is 0; give at least 2"
        )


def _ratio_of_samples(view: View) -> Iterator[str]:
    """A mean over tokens of the batch would weigh long samples more than the ratio is meant for; and the
    ratio is a mean over tokens, so that the bounds of single tokens never clip it."""
    loss, aggregation, low, high = (
        f"algo.{name}" for name in ("policy_loss", "aggregation", "clip_low", "clip_high")
    )
    if view.config.algo.policy_loss not in _OF_SAMPLES:
        return
    if view.value(aggregation) != "seq_mean_token_mean":
        yield (
            f"{view.at(aggregation, loss)}: {view.said(aggregation)} does not go with {view.said(loss)}, "
            'whose ratio is of a whole sample; set algo.aggregation = "seq_mean_token_mean"'
        )
    if "default" in (view.origin(low), view.origin(high)):
        yield (
            f"{view.at(loss)}: {view.said(loss)} needs bounds of its own, far below those of single tokens; "
            'set algo.clip_low = 3e-4 and algo.clip_high = 4e-4, or algo.type = "gspo"'
        )


def _corrected_once(view: View) -> Iterator[str]:
    old = "algo.old"
    correction = view.config.algo.correction
    active = {
        "type": correction.type != "none",
        "reject": correction.reject != "none",
        "veto": correction.veto is not None,
    }
    for name in (name for name, is_on in active.items() if is_on):
        key = f"algo.correction.{name}"
        if view.value(old) == "behavior":
            yield (
                f"{view.at(key, old)}: {view.said(key)} with {view.said(old)} would correct twice: the ratio "
                "is to the sampler's log-probs already; remove one"
            )
            return


def _kl_in_one_place(view: View) -> Iterator[str]:
    reward, loss = "algo.kl_coef", "algo.kl_loss_coef"
    if view.value(reward) > 0 and view.value(loss) > 0:
        yield (
            f"{view.at(reward, loss)}: {view.said(reward)} puts KL into the reward and {view.said(loss)} "
            "into the loss; set one of them to 0"
        )


def _windows_are_open(view: View) -> Iterator[str]:
    """Also where one bound is given: beside the other's default it could leave out everything."""
    correction = view.config.algo.correction
    windows = {("reject_low", "reject_high"): (correction.reject_low, correction.reject_high)}
    if correction.type != "none":
        windows["low", "high"] = window_of(correction.type, low=correction.low, high=correction.high)
    for names, (low, high) in windows.items():
        lower, upper = (f"algo.correction.{name}" for name in names)
        if low >= high:
            where = view.at(lower, upper)
            yield f"{where}: {_bound(view, lower, low)} is not below {_bound(view, upper, high)}"


def _bound(view: View, key: str, value: float) -> str:
    kind = f'algo.correction.type = "{view.config.algo.correction.type}"'
    return f"{key} = {value:g} ({kind})" if view.value(key) is None else view.said(key)


def _greedy_alone(view: View) -> Iterator[str]:
    """A group's reward compares its samples; the greedy reply has none beside it."""
    key, group = "algo.advantage", "reward.group"
    if view.value(key) == "greedy" and view.value(group):
        yield (
            f"{view.at(group, key)}: {view.said(group)} rewards the samples of a group together, and "
            f"{view.said(key)} compares each with a greedy reply outside of it; remove one"
        )


def _long_is_punished_once(view: View) -> Iterator[str]:
    key, weights = "algo.mask_truncated", "reward.weights"
    punishes = "overlong" in (view.config.reward.fn, *view.config.reward.weights)
    if view.value(key) and punishes:
        yield (
            f'{view.at(key)}: {view.said(key)} does not train truncated samples, which the reward "overlong" '
            f"({view.at(weights, 'reward.fn')}) punishes; remove one"
        )


def _policy_is_trained_too(view: View) -> Iterator[str]:
    key, steps = "algo.critic.warmup_steps", view.config.loop.steps
    if steps and view.value(key) >= steps:
        yield (
            f"{view.at(key)}: {view.said(key)} leaves no step of {view.said('loop.steps')} to the policy; "
            f"lower {key}"
        )


RULES: tuple[Callable[[View], Iterator[str]], ...] = (
    _groups_of_one,
    _ratio_of_samples,
    _corrected_once,
    _kl_in_one_place,
    _windows_are_open,
    _greedy_alone,
    _long_is_punished_once,
    _policy_is_trained_too,
)

_WEIGHING = tuple(f"algo.correction.{name}" for name in ("level", "low", "high", "normalize"))
_REJECTING = tuple(f"algo.correction.{name}" for name in ("reject_low", "reject_high"))
_OWN_CRITIC = tuple(f"algo.critic.{name}" for name in ("model", "lr", "warmup_steps"))
_CRITIC = (*_OWN_CRITIC, *(f"algo.critic.{name}" for name in ("shared", "coef", "clip", "bootstrap")))
_CLIPPING = ("algo.clip_low", "algo.clip_high")
IDLE = (
    Idle(("algo.normalize_std",), "algo.advantage", lambda c: c.algo.advantage != "group"),
    Idle(("algo.gamma",), "algo.advantage", lambda c: c.algo.advantage not in ("returns", "turns", "gae")),
    Idle(("algo.lambd", *_CRITIC), "algo.advantage", lambda c: c.algo.advantage != "gae"),
    Idle(_OWN_CRITIC, "algo.critic.shared", lambda c: c.algo.critic.shared),
    Idle(("algo.critic.coef",), "algo.critic.shared", lambda c: not c.algo.critic.shared),
    Idle(("algo.critic.bootstrap",), "algo.mask_truncated", lambda c: c.algo.mask_truncated),
    Idle(("algo.kl_type",), "algo.kl_coef", lambda c: c.algo.kl_coef == 0),
    Idle(("algo.kl_unbiased",), "algo.kl_loss_coef", lambda c: c.algo.kl_loss_coef == 0),
    Idle(("algo.dual_clip",), "algo.policy_loss", lambda c: c.algo.policy_loss != "clip"),
    Idle(_CLIPPING, "algo.policy_loss", lambda c: c.algo.policy_loss not in BUILT_IN_LOSSES),
    Idle(_WEIGHING, "algo.correction.type", lambda c: c.algo.correction.type == "none"),
    Idle(_REJECTING, "algo.correction.reject", lambda c: c.algo.correction.reject == "none"),
)
