"""The keys of training on rows that are given: what a row holds, and what preference losses weigh."""

from typing import Annotated, Literal

from pydantic import Field

from strop.config.keys import Section, key

Text = Annotated[str, Field(min_length=1)]

Objective = Literal[
    "reward",
    "nll",
    "dpo",
    "robust_dpo",
    "ipo",
    "hinge",
    "nca_pair",
    "sppo_hard",
    "apo_zero",
    "simpo",
    "orpo",
    "cpo",
    "kto",
    "bradley_terry",
    "plackett_luce",
    "regression",
]
Shape = Literal["texts", "pairs", "marked", "ranked", "scored"]
"""A text to learn; a chosen and a rejected response; a response that is marked as good or bad; responses from
the best to the worst; a response that is marked with a number."""
SHAPES: dict[Objective, Shape] = {
    "nll": "texts",
    "kto": "marked",
    **dict.fromkeys(
        ("dpo", "robust_dpo", "ipo", "hinge", "nca_pair", "sppo_hard", "apo_zero", "simpo", "orpo", "cpo"),
        "pairs",
    ),
    "bradley_terry": "pairs",
    "plackett_luce": "ranked",
    "regression": "scored",
}
"""What the rows of an objective hold. Those of `reward` are prompts that the model answers."""
TARGET = "target_score"
"""Field of a prompt's metadata: the number that its response is marked with."""
SCORING: tuple[Objective, ...] = ("bradley_terry", "plackett_luce", "regression")
"""Those of a reward model, which has a head of one number and no log-probs."""
NEEDS_REFERENCE = ("dpo", "robust_dpo", "ipo", "hinge", "nca_pair", "sppo_hard", "apo_zero", "kto")


class Preference(Section):
    """What preference losses weigh; each key says whose it is."""

    beta: float = key(0.1, gt=0)
    """How much a difference of log-probs is worth: the strength of the tie to the reference, or of SimPO's
    and CPO's own comparison."""
    label_smoothing: float = key(0.0, ge=0, lt=0.5)
    """Of `dpo` (cDPO) and `robust_dpo` (arXiv:2403.00409): share of pairs that are taken to be the wrong way
    round."""
    mean_logp: bool = key(True)
    """Of `ipo`: log-ratios are means over the tokens of a response, as in TRL; false: sums, as in OpenRLHF.
    The two want another beta."""
    target_margin: float = key(0.5, ge=0)
    """Of `simpo`: γ, by how much β · the difference of mean log-probs should exceed 0."""
    odds_weight: float = key(0.1, gt=0)
    """Of `orpo`: λ, weight of the odds ratio beside the chosen response's mean log-prob."""
    nll_weight: float = key(0.0, ge=0)
    """Weight of the chosen response's mean negative log-prob in the loss of a pair: CPO's, with `dpo` RPO
    (arXiv:2404.19733), with `simpo` CPO-SimPO."""
    desirable_weight: float = key(1.0, gt=0)
    """Of `kto`: λ_D, weight of the responses marked true."""
    undesirable_weight: float = key(1.0, gt=0)
    """Of `kto`: λ_U, weight of those marked false. λ_D · n_D should be 1 to 4/3 of λ_U · n_U."""


class Rows(Section):
    """Rows of supervised and preference training: what is trained is in them. Responses are text or lists of
    chat messages."""

    messages_key: Text = key("messages")
    """Field of a row that holds a whole conversation to learn, instead of a prompt and a response."""
    response_key: Text = key("completion")
    """Field that holds the response, beside `prompts.input_key`; with `kto`, `prompts.label_key` marks it by
    true or false, with `regression` by a number."""
    chosen_key: Text = key("chosen")
    """Field that holds the better response of a pair. Without a prompt beside it, what both responses begin
    with is the prompt."""
    rejected_key: Text = key("rejected")
    """… and the worse."""
    ranked_key: Text = key("responses")
    """Field that holds a list of responses, the best first; every row has `rollout.samples_per_prompt`."""
    turns: Literal["all", "last"] = key("all")
    """Which replies of a conversation are trained. `last` also fits chat templates that show earlier replies
    otherwise than the last, such as without their thoughts."""
    max_tokens: int | None = key(None, ge=2)
    """Prompt and response of a row together at most; unset: what the model takes."""
    on_long: Literal["stop", "skip", "truncate"] = key("stop")
    """What a longer row does: it is an error before the run begins, is left out, or is cut at its end; the
    last two are counted."""
