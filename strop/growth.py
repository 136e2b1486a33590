"""How a sample grows: the contract of `Sample.append_response_tokens`, checked before anything changes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strop.tokens import Tokens

Extras = dict[str, NDArray[Any]]

_SPECULATION = ("spec_accept_token_num", "spec_draft_token_num", "spec_verify_ct", "completion_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """What is to be appended; see `Sample.append_response_tokens`."""

    tokens: Sequence[int]
    log_probs: Sequence[float] | None
    trainable: bool
    meta_info: dict[str, Any]


def grow(sequence: Tokens, prompt_length: int, extras: Extras, added: Growth) -> tuple[Tokens, Extras]:
    """The sequence and extras with `added` at the end; ValueError when it does not fit."""
    _check_reply(added.meta_info)
    version = _version(added.meta_info.get("weight_version", 0))
    longer = sequence + _tokens(added.tokens, added.log_probs, trainable=added.trainable, version=version)
    return longer, {
        **extras,
        **_kept_sets(extras, added, len(sequence) - prompt_length),
        **_routed_experts(extras, added, len(longer)),
    }


def _check_reply(meta_info: dict[str, Any]) -> None:
    """The parts of an engine's reply that are read when the tokens are already in place."""
    finish = meta_info.get("finish_reason")
    if finish is not None and not (isinstance(finish, dict) and "type" in finish):
        raise ValueError(f"append_response_tokens: finish_reason must be {{'type': …}}, got {finish!r}")
    missing = [name for name in _SPECULATION if name not in meta_info]
    if "spec_verify_ct" in meta_info and missing:
        raise ValueError(f"append_response_tokens: spec_verify_ct needs {missing[0]} beside it")


def _version(given: str | int) -> int:
    try:
        return int(given)
    except ValueError as caught:
        raise ValueError(
            f"append_response_tokens: weight_version must be a whole number, got {given!r}"
        ) from caught


def _tokens(
    ids: Sequence[int], log_probs: Sequence[float] | None, *, trainable: bool, version: int
) -> Tokens:
    if not trainable:
        if log_probs is not None:
            raise ValueError("append_response_tokens: tokens that are not trainable take no log_probs")
        return Tokens.context(ids)
    if log_probs is None:
        raise ValueError(f"append_response_tokens: {len(ids)} trainable tokens need log_probs, one each")
    if len(log_probs) != len(ids):
        raise ValueError(f"append_response_tokens: {len(ids)} tokens with {len(log_probs)} log_probs")
    return Tokens.drawn(ids, log_probs, [version] * len(ids))


def _kept_sets(extras: Extras, added: Growth, num_before: int) -> Extras:
    """Ragged top-p sets: ids, and offsets of length response_length + 1; empty where nothing was sampled."""
    ids, offsets = added.meta_info.get("top_p_token_ids"), added.meta_info.get("top_p_token_offsets")
    had, num_new = "top_p_token_offsets" in extras, len(added.tokens)
    if ids is None and offsets is None and not had:
        return {}
    if (ids is None) != (offsets is None):
        raise ValueError("append_response_tokens: top-p sets come as top_p_token_ids and top_p_token_offsets")
    if ids is None:
        if added.trainable and num_new:
            raise ValueError("append_response_tokens: earlier tokens have top-p sets, these have none")
        ids, offsets = [], [0] * (num_new + 1)
    new_ids, new_offsets = np.asarray(ids, np.int32), np.asarray(offsets, np.int64)
    ends_fit = len(new_offsets) == num_new + 1 and new_offsets[0] == 0 and new_offsets[-1] == len(new_ids)
    if not ends_fit or (np.diff(new_offsets) < 0).any():
        raise ValueError(
            f"append_response_tokens: top_p_token_offsets must rise from 0 to {len(new_ids)} "
            f"in {num_new + 1} numbers, got {new_offsets.tolist()}"
        )
    if had:
        old_ids, old_offsets = extras["top_p_token_ids"], extras["top_p_token_offsets"]
    else:
        old_ids, old_offsets = np.zeros(0, np.int32), np.zeros(num_before + 1, np.int64)
    return {
        "top_p_token_ids": np.concatenate([old_ids, new_ids]),
        "top_p_token_offsets": np.concatenate([old_offsets, old_offsets[-1] + new_offsets[1:]]),
    }


def _routed_experts(extras: Extras, added: Growth, num_tokens: int) -> Extras:
    """Expert ids [tokens − 1, layers, top_k]: the last token routes nothing that anyone reads."""
    given = added.meta_info.get("routed_experts")
    if given is None:
        return {}
    experts = np.asarray(given)
    start = int(added.meta_info.get("routed_experts_start_len", 0))
    expected = num_tokens - 1 - start
    if experts.ndim != 3 or len(experts) != expected:
        raise ValueError(
            f"append_response_tokens: routed_experts must be [{expected}, layers, top_k] "
            f"from position {start}, got {list(experts.shape)}"
        )
    if start == 0:
        return {"routed_experts": experts}
    earlier = extras.get("routed_experts")
    if earlier is None or len(earlier) < start:
        raise ValueError(f"append_response_tokens: routed_experts start at {start}, but none came before")
    return {"routed_experts": np.concatenate([earlier[:start], experts])}
