"""The critic's loss in worked numbers, with its gradient, which is 0 where the value was held back."""

import pytest
import torch

from strop.algo.value import clipped_value_loss


@pytest.mark.parametrize(
    ("old", "value", "target", "clip", "loss", "gradient"),
    [
        pytest.param(0.5, 1.0, 1.2, 0.2, 0.125, 0.0, id="2.5-value-clip"),
        pytest.param(0.5, 1.0, 1.2, None, 0.02, -0.2, id="unclipped"),
        pytest.param(0.5, 0.6, 1.2, 0.2, 0.18, -0.6, id="within"),
        pytest.param(0.5, 1.0, 0.0, 0.2, 0.5, 1.0, id="away-from-the-return"),
        pytest.param(0.5, 0.0, 1.2, 0.2, 0.72, -1.2, id="below"),
    ],
)
def test_value_loss_and_its_gradient(old, value, target, clip, loss, gradient):
    value_N = torch.tensor([value], dtype=torch.float64, requires_grad=True)
    old_N, return_N = (torch.tensor([x], dtype=torch.float64) for x in (old, target))
    result = clipped_value_loss(value_N, old_N, return_N=return_N, clip=clip)
    result.loss_N.sum().backward()
    assert result.loss_N.tolist() == pytest.approx([loss], abs=1e-6)
    assert value_N.grad.tolist() == pytest.approx([gradient], abs=1e-6)
    assert result.clipped_N.tolist() == [gradient == 0.0]
