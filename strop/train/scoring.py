"""Opens a reward model to score finished samples, packed as the trainer packs them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

from strop.algo.batch import Batch
from strop.config.tree import Train
from strop.nn.loading import load_model
from strop.nn.value_head import open_head
from strop.rewards.asking import ScoreEnds
from strop.sample import Sample
from strop.train.critic import Scorer


def open_scorer(path: Path, section: Train) -> ScoreEnds:
    """What the reward model in `path` makes of samples, in their order; `section` says how much is packed at
    once. In float32, whatever the trainer computes in: rewards do not depend on it."""
    model = load_model(path, torch.float32)
    scorer = Scorer(model, open_head(model), section.model_copy(update={"dtype": "float32"}))

    def scores(samples: Sequence[Sample]) -> list[float]:
        batch = Batch(
            samples=list(samples),
            update=np.zeros(len(samples), np.int32),
            num_updates=1,
            max_response_tokens=1,
            temperature=1.0,
        )
        return [float(score) for score in scorer.ends(batch, list(range(len(samples))))]

    return scores
