"""Off-policy sequence masking (DeepSeek-V3.2, arXiv:2512.02556)."""

from torch import Tensor

from strop.algo.finite import check_trained
from strop.algo.sequence import Sums, mean_of_sample

# N tokens


def masked_off_policy(
    logp_N: Tensor, behavior_N: Tensor, *, advantage_N: Tensor, mask_N: Tensor, sums: Sums, delta: float
) -> Tensor:
    """[N] bool: the trained tokens of negative advantage in samples with mean(behavior − logp) > `delta`.

    Their loss is put to 0, after the clip and before the aggregation; denominators stay. `behavior_N` is what
    the sampler recorded, so that the mean holds staleness and the difference of the engines; slime takes the
    trainer's `old`, with which the first update of a step masks nothing. It changes from update to update.
    Raises NonFinite when a trained token has no finite `behavior`.
    """
    check_trained(mask_N, behavior=behavior_N)
    return mask_N & (advantage_N < 0) & (mean_of_sample(behavior_N - logp_N, mask_N, sums) > delta)
