"""Log-probs of trained tokens are numbers; where one is not, the column is named."""

import torch
from torch import Tensor

from strop.errors import NonFinite

# N tokens


def check_trained(mask_N: Tensor, **columns: Tensor) -> None:
    """Raises NonFinite, with the name of the column and how many tokens, where a token of the bool `mask_N`
    has NaN or an infinity in one of them."""
    for name, column_N in columns.items():
        is_bad_N = mask_N & ~torch.isfinite(column_N)
        if is_bad_N.any():
            first = int(is_bad_N.nonzero()[0])
            raise NonFinite(
                f"{name} log-prob of {int(is_bad_N.sum())} of {int(mask_N.sum())} trained tokens is not "
                f"finite (the first, token {first} of the micro-batch, has {float(column_N[first])}); a "
                "token that was not sampled with its log-prob cannot be corrected: mask it"
            )
