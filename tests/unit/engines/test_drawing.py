"""Draws from the whole vocabulary: the log-prob of what was drawn."""

import numpy as np
import torch

from strop.engines.local.sampler import draw
from strop.sample import Sampling


def test_log_probs_at_a_low_temperature_are_those_of_the_divided_logits():
    torch.manual_seed(0)
    logits_BV, cold = 10 * torch.randn(64, 3000), Sampling(max_tokens=1, temperature=0.01)
    found = draw(
        logits_BV,
        samplings=[cold] * 64,
        seeds=np.arange(64, dtype=np.uint64),
        positions=np.zeros(64, np.int64),
    )
    exact_BV = torch.log_softmax((logits_BV / np.float32(0.01)).double(), -1).numpy()
    np.testing.assert_allclose(found.logp, exact_BV[np.arange(64), found.ids], rtol=0, atol=1e-6)
