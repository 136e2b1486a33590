"""A step of a few samples, known by their rewards and lengths, and the advantages that `[algo]` gives it."""

import numpy as np

from strop.algo.batch import make_batch
from strop.algo.policy import PolicyGradient
from strop.config.algo import Algo
from strop.sample import Group, Prompt, Sample, Status, Tokens


def batch_of(rewards, lengths, *, group_size=2, num_updates=1, trajectories=None, removed=()):
    """Every token is sampled; the rest of `samples[i]` may be changed, its mask in `batch.mask`."""
    samples = [
        Sample(
            index=i,
            group_id=i // group_size,
            trajectory_id=-1 if trajectories is None else trajectories[i],
            sequence=Tokens.context([1]) + Tokens.drawn([5] * n, [-1.0] * n, [0] * n),
            prompt_length=1,
            reward=reward,
            status=Status.COMPLETED,
            remove_sample=i in removed,
        )
        for i, (reward, n) in enumerate(zip(rewards, lengths, strict=True))
    ]
    parts = [samples[at : at + group_size] for at in range(0, len(samples), group_size)]
    groups = [Group(g, Prompt(id=str(g), messages=""), part) for g, part in enumerate(parts)]
    return make_batch(groups, num_updates=num_updates, max_response_tokens=8, temperature=1.0)


def with_kl(batch, kl):
    """Log-probs whose k1 is `kl`, one a token."""
    batch.scored["ref"] = np.full(batch.num_tokens, -1.5, np.float32)
    batch.scored["old"] = batch.scored["ref"] + np.array(kl, np.float32)
    return batch


def credited(batch, *, num_updates=1, **keys):
    """[N]"""
    PolicyGradient(Algo(**keys), num_updates=num_updates).credit(batch)
    return batch.advantage
