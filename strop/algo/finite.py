"""Columns of trained tokens are numbers; where one is not, it is named."""

from collections.abc import Mapping

import torch
from torch import Tensor

from strop.errors import NonFinite

# N tokens

_SAID: Mapping[str, str] = {
    "logp": "log-prob",
    "old": "old log-prob",
    "ref": "ref log-prob",
    "behavior": "behavior log-prob",
}
_WAYS_OUT: Mapping[str, str] = {
    "behavior": "; a token that was not sampled with its log-prob cannot be corrected: mask it"
}


def check_trained(mask_N: Tensor, **columns: Tensor) -> None:
    """Raises NonFinite, with the name of the column and how many tokens, where a token of the bool `mask_N`
    has NaN or an infinity in one of them, in the order given.

    The sum of a loss would not always tell: a clamped ratio makes a large number of an infinity, and a
    comparison with NaN lets a token pass.
    """
    for name, column_N in columns.items():
        is_bad_N = mask_N & ~torch.isfinite(column_N)
        if is_bad_N.any():
            first = int(is_bad_N.nonzero()[0])
            value = float(column_N.detach()[first])
            raise NonFinite(
                f"{_SAID.get(name, name)} of {int(is_bad_N.sum())} of {int(mask_N.sum())} trained tokens is "
                f"not finite (the first, token {first} of the micro-batch, has {value})"
                f"{_WAYS_OUT.get(name, '')}"
            )
