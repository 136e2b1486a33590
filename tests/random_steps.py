"""Random steps of odd shapes for any algorithm, and a model of one weight matrix that scores their tokens.

A step is a function of (algorithm, seed). With `poison`, all that no formula may read holds NaN or an
infinity instead of 0; nothing else differs.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch

from strop.algo.base import LossInputs
from strop.algo.batch import Batch
from strop.algo.distill import reverse_kl
from strop.algo.open import open_algorithm
from strop.config.offline import SHAPES
from strop.sample import STEP_ENDS, STEP_REWARDS, Role, Sample, Status, Tokens

# N tokens, D features, V vocabulary

D, V = 3, 5
SCALES = (0.05, 0.4, 3.0)
"""How far policies are apart: inside every window, around its bounds, far outside."""
OF_GROUPS = ("group", "leave_one_out", "rank", "steps")
OF_STEPS = ("steps", "turns")
POISONS = np.array([np.nan, np.inf, -np.inf], np.float32)


def response(rng, *, num_turns=None):
    """Turns with tool tokens between and behind them; any of it may be masked, and all of it missing."""
    sequence = Tokens.context([1])
    for _ in range(rng.integers(0, 4) if num_turns is None else num_turns):
        n = int(rng.integers(1, 7))
        drawn = Tokens.drawn(rng.integers(0, V, n), -rng.exponential(1.0, n), np.zeros(n))
        trained = rng.random(n) < rng.choice([0.0, 0.6, 1.0], p=[0.1, 0.4, 0.5])
        sequence += replace(drawn, mask=trained) + Tokens.context(rng.integers(0, V, rng.integers(0, 3)))
    return sequence


def played(rng, *, least, has_steps):
    """Groups of uneven sizes, trajectories of one or two samples, groups of equal rewards."""
    samples, trajectories = [], 0
    for group in range(rng.integers(1, 5)):
        is_equal = rng.random() < 0.2
        for _ in range(rng.integers(least, 6)):
            reward = 0.3 if is_equal else float(rng.choice([0.0, 1.0, rng.normal()]))
            for _ in range(rng.choice([1, 2], p=[0.8, 0.2])):
                samples.append(
                    Sample(
                        index=len(samples),
                        group_id=group,
                        trajectory_id=trajectories,
                        sequence=response(rng),
                        prompt_length=1,
                        reward=reward,
                        status=Status.TRUNCATED if rng.random() < 0.2 else Status.COMPLETED,
                        remove_sample=bool(rng.random() < 0.1),
                    )
                )
            trajectories += 1
    for sample in samples if has_steps else ():
        ends = np.flatnonzero(rng.random(sample.response_length) < 0.4)
        sample.extras = {STEP_REWARDS: rng.normal(size=len(ends)), STEP_ENDS: ends}
    return samples


def given(rng, shape):
    """Rows of data: each response has a trained token."""
    roles = {
        "texts": lambda: [Role.RESPONSE],
        "pairs": lambda: [Role.CHOSEN, Role.REJECTED],
        "marked": lambda: [rng.choice([Role.DESIRABLE, Role.UNDESIRABLE]), Role.MISMATCHED],
        "ranked": lambda: [Role.RESPONSE] * rng.integers(2, 5),
        "scored": lambda: [Role.RESPONSE],
    }[shape]
    samples = []
    for group in range(rng.integers(1, 7)):
        for role in roles():
            said = response(rng, num_turns=2)
            mask = np.where(said.sampled, said.mask, rng.random(len(said)) < 0.1)
            mask[[0, int(np.flatnonzero(said.sampled)[0])]] = False, True
            samples.append(
                Sample(
                    index=len(samples),
                    group_id=group,
                    sequence=Tokens.given(said.ids, mask),
                    prompt_length=1,
                    role=role,
                    remove_sample=role == Role.MISMATCHED,
                )
            )
    return samples


def samples_for(section, rng):
    if section.objective in SHAPES:
        return given(rng, SHAPES[section.objective])
    least = 2 if section.advantage in OF_GROUPS else 1
    return played(rng, least=least, has_steps=section.advantage in OF_STEPS)


def batch_for(section, rng):
    samples = samples_for(section, rng)
    return batch_of(samples)


def batch_of(samples):
    """One update."""
    return Batch(
        samples=samples,
        update=np.zeros(len(samples), np.int32),
        num_updates=1,
        max_response_tokens=24,
        temperature=1.0,
        greedy={sample.group_id: 0.25 for sample in samples},
    )


def reordered(batch, rng):
    """The same samples in another order, those of a trajectory one after another; and, [N], where each of
    their tokens stood."""
    key_S = rng.permutation(batch.trajectories.max() + 1)[batch.trajectories]
    order = np.argsort(key_S, kind="stable")
    rows_N = np.concatenate([np.arange(batch.num_tokens)[batch.tokens_of(row)] for row in order])
    other = batch_of([batch.samples[row] for row in order])
    other.behavior = batch.behavior[rows_N]
    other.scored = {name: column[rows_N] for name, column in batch.scored.items()}
    return other, rows_N


@dataclass(frozen=True, slots=True)
class Step:
    """One update, credited."""

    algorithm: object
    batch: Batch
    columns: dict
    """[N] float64: of `LossInputs` by its names, and those of its `columns`."""
    features_ND: torch.Tensor
    teacher_NV: torch.Tensor
    ids_N: torch.Tensor

    @property
    def weights_DV(self):
        """Of the model, where the update begins."""
        return torch.linspace(-1, 1, D * V, dtype=torch.float64).sin().reshape(D, V).clone()

    def inputs(self, weights_DV, rows, *, sums, sample_N, logp_N=None):
        """`rows` of the step as the trainer would give them to the loss; `logp_N` and the entropy are leaves
        of the graph behind which the weights lie. Of other ranks' tokens too, if `logp_N` is given."""
        logp_NV = (self.features_ND[rows] @ weights_DV).log_softmax(-1)
        scored_N = logp_NV.gather(1, self.ids_N[rows, None])[:, 0] if logp_N is None else logp_N
        entropy_N = -(logp_NV.exp() * logp_NV).sum(-1)
        column = {name: column_N[rows] for name, column_N in self.columns.items()}
        own = {name: column.pop(name) for name in ("old_N", "ref_N", "behavior_N", "advantage_N", "weight_N")}
        if "divergence" in self.algorithm.needs:
            column["divergence"] = self._masked(reverse_kl(logp_NV, self.teacher_NV[rows]), rows)
        return LossInputs(
            logp_N=self._masked(scored_N, rows),
            entropy_N=self._masked(entropy_N, rows),
            sums=sums,
            sample_N=sample_N,
            columns=column,
            **own,
        )

    def _masked(self, value_N, rows):
        """NaN or what else stands where nothing is trained, as the trainer may give it."""
        fill_N = torch.where(self.columns["weight_N"] > 0, 0, self.columns["old_N"])[rows]
        return torch.where(self.columns["weight_N"][rows] > 0, value_N, fill_N)


def own_masks(batch):
    """[N] of the samples themselves, removed or not."""
    return np.concatenate([s.sequence.mask[s.prompt_length :] for s in batch.samples])


def random_step(section, seed, *, poison):
    step, fill = scored_step(section, seed, poison=poison)
    step.algorithm.credit(step.batch)
    fill_columns(step, fill)
    return step


def scored_step(section, seed, *, poison):
    """Before its credit; and what stands where nothing may be read."""
    rng = np.random.default_rng(seed)
    batch = batch_for(section, rng)
    features_ND = torch.from_numpy(rng.normal(size=(batch.num_tokens, D)))
    teacher_NV = torch.from_numpy(rng.normal(size=(batch.num_tokens, V))).log_softmax(-1)
    ids = [s.sequence.ids[s.prompt_length :] for s in batch.samples]
    ids_N = torch.from_numpy(np.concatenate(ids)).long() % V
    step = Step(open_algorithm(section, num_updates=2), batch, {}, features_ND, teacher_NV, ids_N)
    fill = np.random.default_rng(seed).choice(POISONS, batch.num_tokens) if poison else np.float32(0)
    score(step, rng, fill)
    return step, fill


def score(step, rng, fill):
    """What trainer and sampler know before the credit; the policy has moved a little since."""
    batch, known = step.batch, own_masks(step.batch)
    logp_NV = (step.features_ND @ step.weights_DV).log_softmax(-1)
    logp_N = logp_NV.gather(1, step.ids_N[:, None])[:, 0].numpy()
    old_N = logp_N + drift(rng, batch)
    scored = {
        "old": old_N,
        "ref": old_N + drift(rng, batch),
        "teacher": np.where(batch.sample_of_token % 3 == 1, np.nan, old_N + drift(rng, batch)),
        "values": rng.normal(size=batch.num_tokens),
    }
    for name in sorted(step.algorithm.needs & set(scored)):
        batch.scored[name] = np.where(known, scored[name], fill).astype(np.float32)
    if "next_values" in step.algorithm.needs:
        batch.scored["next_values"] = batch.spread(rng.normal(size=len(batch.samples)))
    behavior_N = old_N + drift(rng, batch)
    batch.behavior = np.where(known, behavior_N, fill).astype(np.float32)
    if "old" not in batch.scored:
        step.columns["old_N"] = torch.from_numpy(np.where(known, old_N, fill))


def drift(rng, batch):
    return rng.choice(SCALES) * rng.normal(size=batch.num_tokens)


def fill_columns(step, fill):
    batch = step.batch
    weight_N = step.algorithm.weights(batch)
    columns = {
        "behavior_N": batch.behavior,
        "advantage_N": batch.advantage,
        **{("old_N" if name == "old" else name): column_N for name, column_N in batch.scored.items()},
    }
    for name, column_N in columns.items():
        step.columns[name] = torch.from_numpy(np.where(batch.mask, column_N, fill).astype(np.float64))
    step.columns["old_N"] = torch.where(
        torch.from_numpy(batch.mask), step.columns["old_N"], torch.from_numpy(np.asarray(fill, np.float64))
    )
    step.columns["ref_N"] = step.columns.pop("ref", step.columns["old_N"])
    step.columns["weight_N"] = torch.from_numpy(weight_N.astype(np.float64))
