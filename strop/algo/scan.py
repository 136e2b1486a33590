"""The recurrence behind discounted returns and GAE, in few and wide steps instead of one a token."""

import numpy as np
from numpy.typing import NDArray

# N tokens in K chunks of C

CHUNK = 128
"""The K carries are summed one after another, and each of the C steps is K wide."""


def backward_scan(
    decay_N: NDArray[np.float64], gain_N: NDArray[np.float64], *, chunk: int = CHUNK
) -> NDArray[np.float64]:
    """[N] S_i = gain_i + decay_i · S_{i+1}, S_N = 0: from the end, N/C serial steps and C vector ones.

    A decay of 0 ends what comes from behind, so that sequences packed into one row do not meet. The pairs
    compose as (a₁, b₁)∘(a₂, b₂) = (a₁·a₂, a₂·b₁ + b₂) (Blelloch 1990). Decays are multiplied and never
    divided by: a product that underflows stands for a term below 1e-308 of its gain, for any chunk.
    """
    chunks = -(-len(gain_N) // chunk)
    decay_CK = _by_place(decay_N, chunks, chunk)
    local_CK = _by_place(gain_N, chunks, chunk)
    for place in range(1, chunk):
        local_CK[place] += decay_CK[place] * local_CK[place - 1]
        decay_CK[place] *= decay_CK[place - 1]
    carry_K = _carries(decay_CK[-1].tolist(), local_CK[-1].tolist())
    local_CK += decay_CK * carry_K
    return local_CK.T.reshape(-1)[: len(gain_N)][::-1]


def masked_scan(
    gain_N: NDArray[np.float64],
    *,
    mask_N: NDArray[np.bool_],
    weight: float,
    last_places: NDArray[np.int64],
    inflow: NDArray[np.float64] | float = 0.0,
    chunk: int = CHUNK,
) -> NDArray[np.float64]:
    """[N] `backward_scan` by `weight` in which an untrained token gains nothing and passes all on.

    a = weight·m + (1 − m), b = gain·m; gains are finite, also where the mask is 0. At each of `last_places` a
    sequence ends, and `inflow`, one for each, is what comes to it from behind. An untrained token has the
    value of the next trained one of its sequence.
    """
    decay_N = np.array([1.0, weight])[mask_N.view(np.uint8)]
    gained_N = gain_N * mask_N
    gained_N[last_places] += decay_N[last_places] * inflow
    decay_N[last_places] = 0.0
    return backward_scan(decay_N, gained_N, chunk=chunk)


def _by_place(column_N: NDArray[np.float64], chunks: int, chunk: int) -> NDArray[np.float64]:
    """[C, K] from the end: row c holds the c-th token of every chunk, zeros behind the first token."""
    padded = np.zeros(chunks * chunk, np.float64)
    padded[: len(column_N)] = column_N[::-1]
    return np.ascontiguousarray(padded.reshape(chunks, chunk).T)


def _carries(decays: list[float], totals: list[float]) -> NDArray[np.float64]:
    """[K] what flows into each chunk from the one behind it."""
    carries, carry = [], 0.0
    for decay, total in zip(decays, totals, strict=True):
        carries.append(carry)
        carry = total + decay * carry
    return np.array(carries, np.float64)
