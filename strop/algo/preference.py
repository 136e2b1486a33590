"""Losses of preference pairs: from summed log-probs of a chosen and a rejected response to one loss a pair.

No loss looks at another pair, so that Σ weight · loss is equal for every split of a batch. In the docstrings
w is the chosen response and l the rejected one, and a = logp − ref is a response's log-ratio.
"""

from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import logsigmoid

from strop.algo.log1mexp import log1mexp

# P pairs


@dataclass(frozen=True, slots=True)
class Lengths:
    """Trained tokens of both responses, at least 1."""

    chosen_P: Tensor
    rejected_P: Tensor


@dataclass(frozen=True, slots=True)
class Implied:
    """What the policy says that the responses are worth: β · (logp − ref), detached."""

    chosen_P: Tensor
    rejected_P: Tensor
    margin_P: Tensor
    """chosen − rejected."""
    is_right_P: Tensor
    """bool: the margin is above 0; a tie is not right."""


def implied_rewards(
    chosen_P: Tensor, rejected_P: Tensor, ref_chosen_P: Tensor, ref_rejected_P: Tensor, *, beta: float
) -> Implied:
    """For metrics (arXiv:2305.18290 §4). Without a reference, give zeros for it."""
    worth_w_P = beta * (chosen_P - ref_chosen_P).detach()
    worth_l_P = beta * (rejected_P - ref_rejected_P).detach()
    margin_P = worth_w_P - worth_l_P
    return Implied(worth_w_P, worth_l_P, margin_P, is_right_P=margin_P > 0)


def dpo(
    chosen_P: Tensor,
    rejected_P: Tensor,
    ref_chosen_P: Tensor,
    ref_rejected_P: Tensor,
    *,
    beta: float,
    label_smoothing: float = 0.0,
) -> Tensor:
    """−(1 − s) · log σ(β h) − s · log σ(−β h), h = a_w − a_l (arXiv:2305.18290 eq. 7).

    `label_smoothing` s < ½ is the share of pairs that are taken to be the wrong way round: cDPO (Mitchell,
    "A note on DPO with noisy preferences", 2023).
    """
    logit_P = beta * _gap(chosen_P, rejected_P, ref_chosen_P, ref_rejected_P)
    return -(1 - label_smoothing) * logsigmoid(logit_P) - label_smoothing * logsigmoid(-logit_P)


def robust_dpo(
    chosen_P: Tensor,
    rejected_P: Tensor,
    ref_chosen_P: Tensor,
    ref_rejected_P: Tensor,
    *,
    beta: float,
    flipped: float,
) -> Tensor:
    """(−(1 − s) · log σ(β h) + s · log σ(−β h)) / (1 − 2 s): its mean over pairs of which a share
    s = `flipped` < ½ is the wrong way round is DPO's loss on clean pairs (arXiv:2403.00409)."""
    logit_P = beta * _gap(chosen_P, rejected_P, ref_chosen_P, ref_rejected_P)
    noisy_P = -(1 - flipped) * logsigmoid(logit_P) + flipped * logsigmoid(-logit_P)
    return noisy_P / (1 - 2 * flipped)


def ipo(
    chosen_P: Tensor,
    rejected_P: Tensor,
    ref_chosen_P: Tensor,
    ref_rejected_P: Tensor,
    *,
    beta: float,
    lengths: Lengths | None,
) -> Tensor:
    """(h − 1 / (2 β))² (arXiv:2310.12036 eq. 17).

    With `lengths` each log-ratio is the mean over its response's tokens, as in TRL; with None it is the sum,
    as in OpenRLHF. The two want a β of a different size.
    """
    a_w_P, a_l_P = chosen_P - ref_chosen_P, rejected_P - ref_rejected_P
    if lengths is not None:
        a_w_P, a_l_P = a_w_P / lengths.chosen_P, a_l_P / lengths.rejected_P
    return (a_w_P - a_l_P - 1 / (2 * beta)).square()


def hinge(
    chosen_P: Tensor, rejected_P: Tensor, ref_chosen_P: Tensor, ref_rejected_P: Tensor, *, beta: float
) -> Tensor:
    """max(0, 1 − β h): SLiC (arXiv:2305.10425) on log-ratios, as in arXiv:2309.06657."""
    return (1 - beta * _gap(chosen_P, rejected_P, ref_chosen_P, ref_rejected_P)).relu()


def bco_pair(
    chosen_P: Tensor,
    rejected_P: Tensor,
    ref_chosen_P: Tensor,
    ref_rejected_P: Tensor,
    *,
    beta: float,
    shift: float = 0.0,
) -> Tensor:
    """−log σ(β a_w − δ) − log σ(−(β a_l − δ)), δ = `shift` (arXiv:2404.04656).

    δ is the paper's running mean of the implied rewards, a constant of the whole update.
    """
    return -logsigmoid(beta * (chosen_P - ref_chosen_P) - shift) - logsigmoid(
        shift - beta * (rejected_P - ref_rejected_P)
    )


def nca_pair(
    chosen_P: Tensor, rejected_P: Tensor, ref_chosen_P: Tensor, ref_rejected_P: Tensor, *, beta: float
) -> Tensor:
    """−log σ(r_w) − ½ log σ(−r_w) − ½ log σ(−r_l), r = β a (arXiv:2402.05369, two responses).

    It holds the chosen response's probability up, where DPO is content to push both down.
    """
    r_w_P, r_l_P = beta * (chosen_P - ref_chosen_P), beta * (rejected_P - ref_rejected_P)
    return -logsigmoid(r_w_P) - logsigmoid(-r_w_P) / 2 - logsigmoid(-r_l_P) / 2


def sppo_hard(
    chosen_P: Tensor, rejected_P: Tensor, ref_chosen_P: Tensor, ref_rejected_P: Tensor, *, beta: float
) -> Tensor:
    """(a_w − 1 / (2 β))² + (a_l + 1 / (2 β))²: win rates of 1 and 0 (arXiv:2405.00675)."""
    target = 1 / (2 * beta)
    return (chosen_P - ref_chosen_P - target).square() + (rejected_P - ref_rejected_P + target).square()


def apo_zero(
    chosen_P: Tensor, rejected_P: Tensor, ref_chosen_P: Tensor, ref_rejected_P: Tensor, *, beta: float
) -> Tensor:
    """1 − σ(β a_w) + σ(β a_l): chosen up, rejected down, each by itself (arXiv:2408.06266)."""
    # 1 − σ(x) is σ(−x), which keeps its digits where σ(x) is nearly 1.
    return (beta * (ref_chosen_P - chosen_P)).sigmoid() + (beta * (rejected_P - ref_rejected_P)).sigmoid()


def simpo(
    chosen_P: Tensor, rejected_P: Tensor, *, lengths: Lengths, beta: float, target_margin: float
) -> Tensor:
    """−log σ(β · (logp_w / |w| − logp_l / |l|) − γ), γ = `target_margin`; no reference
    (arXiv:2405.14734 eq. 6)."""
    gap_P = chosen_P / lengths.chosen_P - rejected_P / lengths.rejected_P
    return -logsigmoid(beta * gap_P - target_margin)


def orpo(chosen_P: Tensor, rejected_P: Tensor, *, lengths: Lengths, odds_weight: float) -> Tensor:
    """NLL_w − λ · log σ(log odds_w − log odds_l), λ = `odds_weight`; no reference
    (arXiv:2403.07691 eq. 6, 7).

    The odds p / (1 − p) are of p = exp(mean log-prob of a response's tokens); the NLL is the mean over the
    chosen one's tokens.
    """
    mean_w_P, mean_l_P = chosen_P / lengths.chosen_P, rejected_P / lengths.rejected_P
    log_odds_P = (mean_w_P - log1mexp(mean_w_P)) - (mean_l_P - log1mexp(mean_l_P))
    return -mean_w_P - odds_weight * logsigmoid(log_odds_P)


def cpo(chosen_P: Tensor, rejected_P: Tensor, *, lengths: Lengths, beta: float, nll_weight: float) -> Tensor:
    """−log σ(β · (logp_w − logp_l)) + `nll_weight` · NLL_w; no reference (arXiv:2401.08417).

    The NLL is the mean over the chosen response's tokens, as in TRL; the paper's is the sum.
    """
    nll_P = -chosen_P / lengths.chosen_P
    return -logsigmoid(beta * (chosen_P - rejected_P)) + nll_weight * nll_P


def _gap(chosen_P: Tensor, rejected_P: Tensor, ref_chosen_P: Tensor, ref_rejected_P: Tensor) -> Tensor:
    """h: how much more than the reference the policy prefers the chosen response."""
    # Each response's own difference first: long responses have large sums that nearly cancel.
    return (chosen_P - ref_chosen_P) - (rejected_P - ref_rejected_P)
