"""Losses of pairs, responses, lists and tokens as functions of rows, each with random rows of its own."""

from dataclasses import dataclass

import numpy as np
import torch
from layout_cases import SCORES
from layouts import OfRows
from random_steps import samples_for

from strop.algo import distill, kl, preference, process, reward_model, value
from strop.algo.kto import batch_kl, kto
from strop.algo.preference import Lengths
from strop.algo.scoring import Objective, Scored, open_objective
from strop.config.offline import TARGET

# R rows, K responses of a list or positions of a pair, V vocabulary

TIED = {
    "dpo": {"beta": 0.3, "label_smoothing": 0.1},
    "robust_dpo": {"beta": 0.3, "flipped": 0.2},
    "ipo": {"beta": 0.2},
    "hinge": {"beta": 0.3},
    "bco_pair": {"beta": 0.3, "shift": 0.4},
    "nca_pair": {"beta": 0.3},
    "sppo_hard": {"beta": 0.2},
    "apo_zero": {"beta": 0.3},
}
FREE = {
    "simpo": {"beta": 2.0, "target_margin": 0.5},
    "orpo": {"odds_weight": 0.3},
    "cpo": {"beta": 0.3, "nll_weight": 0.5},
}


def lengths_of(given):
    return Lengths(given["chosen length"], given["rejected length"])


def of_pairs(name):
    def tied(leaves, given):
        more = {"lengths": lengths_of(given)} if name == "ipo" else {}
        fn = getattr(preference, name)
        both = leaves["chosen"], leaves["rejected"], given["ref chosen"], given["ref rejected"]
        return fn(*both, **TIED[name], **more)

    def free(leaves, given):
        fn = getattr(preference, name)
        return fn(leaves["chosen"], leaves["rejected"], lengths=lengths_of(given), **FREE[name])

    return tied if name in TIED else free


def per_token(leaves, given):
    """Pairs compared at the first so many of K positions."""
    is_there_RK = torch.arange(leaves["many"].shape[1]) < given["count"][:, None]
    pair_M = is_there_RK.nonzero()[:, 0]
    scores = leaves["many"][is_there_RK], leaves["others"][is_there_RK]
    return reward_model.bradley_terry_per_token(*scores, pair_M=pair_M, num_pairs=len(given["count"]))


def of_critic(leaves, given):
    """Row by row, since the aggregation is inside of it; a row of weight 0 holds NaN beside the value."""
    columns = leaves["chosen"], given["old"], given["return"], given["critic weight"]
    of_each = [
        value.critic_loss(v, old, return_N=r, weight_N=w, clip=0.2).total
        for v, old, r, w in zip(*(column.unsqueeze(-1) for column in columns), strict=True)
    ]
    return torch.stack(of_each) if of_each else leaves["chosen"].sum()[None][:0]


LOSSES = {
    **{f"preference.{name}": of_pairs(name) for name in (*TIED, *FREE)},
    "kto.kto": lambda leaves, given: kto(
        leaves["chosen"],
        given["ref chosen"],
        is_desirable_S=given["good"],
        reference_point=given["point"],
        beta=0.4,
        desirable_weight=1.5,
        undesirable_weight=0.8,
    ),
    "reward_model.bradley_terry": lambda leaves, given: reward_model.bradley_terry(
        leaves["chosen"], leaves["rejected"], margin_P=given["margin"], centering=0.1
    ),
    "reward_model.bradley_terry_per_token": per_token,
    "reward_model.pointwise": lambda leaves, given: reward_model.pointwise(leaves["chosen"], given["margin"]),
    "reward_model.plackett_luce": lambda leaves, _: reward_model.plackett_luce(leaves["many"]),
    "process.step_bce": lambda leaves, given: process.step_bce(leaves["chosen"], given["margin"]),
    "value.clipped_value_loss": lambda leaves, given: (
        value.clipped_value_loss(
            leaves["chosen"], given["ref chosen"], return_N=given["return"], clip=0.2
        ).loss_N
    ),
    "value.critic_loss": of_critic,
    "distill.reverse_kl": lambda leaves, given: distill.reverse_kl(logp(leaves["many"]), given["teacher"]),
    "distill.top_k_reverse_kl": lambda leaves, given: distill.top_k_reverse_kl(
        logp(leaves["many"])[:, :2], given["teacher"][:, :2]
    ),
    **{
        f"distill.gkd, beta {beta:g}": lambda leaves, given, beta=beta: distill.gkd(
            logp(leaves["many"]), given["teacher"], beta=beta
        )
        for beta in (0.0, 0.3, 1.0)
    },
    "kl.exact_kl": lambda leaves, given: kl.exact_kl(given["teacher"], logp(leaves["many"])),
    "kl.jensen_shannon": lambda leaves, given: kl.jensen_shannon(logp(leaves["many"]), given["teacher"]),
}


def logp(scores):
    return scores.log_softmax(-1)


def random_rows(name, seed):
    """Rows of one loss; an update of a single row among them."""
    draw = torch.Generator().manual_seed(seed)
    num_rows = int(torch.randint(1, 12, (), generator=draw))
    num_wide = int(torch.randint(3, 6, (), generator=draw))

    def normal(*more):
        return torch.randn(num_rows, *more, generator=draw, dtype=torch.float64)

    def counts(high):
        return torch.randint(1, high, (num_rows,), generator=draw)

    leaves = {"chosen": -normal().abs() - 0.1, "rejected": -normal().abs() * 5, "many": normal(num_wide)}
    leaves["others"] = normal(num_wide)
    given = {
        "ref chosen": -normal().abs(),
        "ref rejected": -normal().abs() * 5,
        "chosen length": counts(9).double(),
        "rejected length": counts(9).double(),
        "margin": normal().sigmoid(),
        "good": counts(3) == 1,
        "point": batch_kl(normal(), normal()).expand(num_rows),
        "count": counts(num_wide),
        "return": normal(),
        "teacher": logp(normal(num_wide)),
        "critic weight": (counts(4) - 1) / 7.0,
    }
    given["old"] = torch.where(given["critic weight"] > 0, normal(), torch.nan)
    return OfRows(LOSSES[name], leaves, given, weight_R=normal().abs() / num_rows)


@dataclass(frozen=True, slots=True)
class OfScores:
    """The loss of a reward model: of whole groups, by the scores of every token."""

    objective: Objective
    samples: list
    token_N: torch.Tensor

    def whole(self):
        """As in `OfTokens`."""
        return self._of({sample.group_id for sample in self.samples})

    def of_rank(self, layout, rank, sum):
        """As in `OfTokens`; a group's tokens lie on one rank."""
        rng = np.random.default_rng(layout.seed)
        place_G = rng.integers(0, 2 * layout.size, self.samples[-1].group_id + 1)
        parts = [self._of(set(np.flatnonzero(place_G == 2 * rank + micro))) for micro in range(2)]
        return {name: parts[0].get(name, 0) + parts[1].get(name, 0) for name in {**parts[0], **parts[1]}}

    def _of(self, groups):
        token_N = self.token_N.clone().requires_grad_()
        lengths = [sample.response_length for sample in self.samples]
        parts = token_N.split(lengths)
        rows = [row for row, sample in enumerate(self.samples) if sample.group_id in groups]
        if not rows:
            return {"total": torch.zeros(()).double(), "gradient of scores": torch.zeros_like(self.token_N)}
        scored = Scored(
            [self.samples[row] for row in rows],
            torch.stack([parts[row][-1] for row in rows]),
            torch.cat([parts[row] for row in rows]),
        )
        loss = self.objective.loss(scored, weight=1 / (self.samples[-1].group_id + 1))
        loss.total.backward()
        return {"total": loss.total.detach(), "gradient of scores": token_N.grad, **loss.parts}


def random_scores(name, seed):
    """Groups of one reward model's rows."""
    rng = np.random.default_rng(seed)
    samples = samples_for(SCORES[name], rng)
    for sample in samples:
        sample.metadata = {TARGET: float(rng.normal()), "margin": float(rng.random())}
    num_tokens = sum(sample.response_length for sample in samples)
    return OfScores(open_objective(SCORES[name]), samples, torch.from_numpy(rng.normal(size=num_tokens)))
