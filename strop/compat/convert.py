"""strop's samples ↔ slime's: what a function said is checked token by token before it is believed."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strop.compat.sample import Sample as SlimeSample
from strop.sample import Message, Prompt, Sample, Scores, Status
from strop.tokens import MalformedTokens, Tokens


def to_slime(
    sample: Sample, *, prompt: str | list[Message], task: Prompt | None, key: str | None
) -> SlimeSample:
    """A copy in slime's form. `prompt`: as slime would hold it; `key`: `reward.score_key`, under which the
    reward is then one of a table, as it was when the reward function gave it."""
    reward: Any = sample.reward
    if key is not None and reward is not None:
        reward = {**sample.scores, key: reward}
    offsets = sample.extras.get("top_p_token_offsets")
    is_blank = len(sample.sequence) == 0
    return SlimeSample(
        group_index=sample.group_id,
        index=sample.index,
        rollout_id=sample.trajectory_id,
        prompt=prompt,
        tokens=sample.tokens,
        response=sample.response,
        response_length=sample.response_length,
        label=sample.label,
        reward=reward,
        loss_mask=None if is_blank else sample.loss_mask,
        weight_versions=sample.weight_versions,
        rollout_log_probs=None if is_blank else sample.rollout_log_probs,
        rollout_top_p_token_ids=None if offsets is None else sample.extras["top_p_token_ids"].tolist(),
        rollout_top_p_token_offsets=None if offsets is None else offsets.tolist(),
        rollout_routed_experts=sample.extras.get("routed_experts"),
        remove_sample=sample.remove_sample,
        status=sample.status,
        metadata=deepcopy(sample.metadata),
        non_generation_time=sample.non_generation_time,
        spec_info=deepcopy(sample.spec_info),
        task=task,
    )


@dataclass(frozen=True, slots=True)
class Absorb:
    """Writes what a function left on slime's sample to strop's; ValueError says what cannot be believed."""

    key: str | None
    """`reward.score_key`."""

    def made(
        self, given: SlimeSample, sample: Sample, *, prompt_ids: Sequence[int], version: int | None
    ) -> None:
        """All of a sample that a generate function made. `prompt_ids`: how its tokens must begin, if that is
        known; `version`: of the weights that drew it, unless its `weight_versions` say."""
        sequence, prompt_length = _sequence(given, version)
        begins = sequence.ids[: len(prompt_ids)].tolist()
        if begins != list(prompt_ids) or prompt_length < len(prompt_ids):
            raise ValueError(
                f"sample.tokens must begin with the {len(prompt_ids)} ids of the prompt, as "
                "tokenizer.encode(sample.prompt, add_special_tokens=False) gives them"
            )
        sample.sequence, sample.prompt_length = sequence, prompt_length
        sample.extras = _extras(given)
        sample.spec_info = given.spec_info
        self._rest(given, sample)

    def changed(self, given: SlimeSample, sample: Sample) -> None:
        """What a hook or a filter may change: mask, text, reward, status, metadata, `remove_sample`."""
        if list(given.tokens) != sample.tokens or given.response_length != sample.response_length:
            raise ValueError("sample.tokens were changed; only a generate function makes tokens")
        known = sample.rollout_log_probs if given.rollout_log_probs is None else list(given.rollout_log_probs)
        if known != sample.rollout_log_probs:
            raise ValueError("sample.rollout_log_probs were changed; only a generate function makes them")
        mask = np.zeros(len(sample.sequence), bool)
        mask[sample.prompt_length :] = _mask(given, sample.response_length)
        try:
            sample.sequence = replace(sample.sequence, mask=mask)
        except MalformedTokens as error:
            raise ValueError(
                f"sample.loss_mask trains a token that the model did not draw: {error}"
            ) from error
        self._rest(given, sample)

    def _rest(self, given: SlimeSample, sample: Sample) -> None:
        sample.response, sample.metadata = given.response or "", given.metadata
        sample.remove_sample = bool(given.remove_sample)
        sample.status = Status(given.status)
        if given.non_generation_time > sample.non_generation_time:
            spent = given.non_generation_time - sample.non_generation_time
            sample.timing["environment_s"] = sample.timing.get("environment_s", 0.0) + spent
        if given.reward is not None:
            scores = scores_of(given.reward, self.key)
            sample.reward, sample.scores = scores.value, {**sample.scores, **scores.named}


def scores_of(reward: Any, key: str | None) -> Scores:
    """A reward as slime's functions give it: a number, or a table of which `key` is trained on. Entries of a
    table that are no numbers are left out. ValueError names the keys that there are."""
    if not isinstance(reward, dict):
        return Scores(reward)
    if key is None or key not in reward:
        has = ", ".join(map(repr, reward))
        way_out = "name one with --reward-key" if key is None else f"--reward-key {key} is not among them"
        raise ValueError(f"the reward is a table of {has}; {way_out}")
    named = {name: float(value) for name, value in reward.items() if name != key and isinstance(value, Real)}
    return Scores(reward[key], named)


def _sequence(given: SlimeSample, version: int | None) -> tuple[Tokens, int]:
    """The tokens, and how many of them are the prompt's."""
    tokens, response = list(given.tokens), given.response_length
    if not tokens:
        raise ValueError(
            "sample.tokens is empty; set tokens (prompt and response), response_length, loss_mask and "
            "rollout_log_probs, or grow it with sample.append_response_tokens"
        )
    if not 0 <= response < len(tokens):
        raise ValueError(f"sample.response_length = {response} of {len(tokens)} tokens")
    mask, prompt_length = _mask(given, response), len(tokens) - response
    logp = _log_probs(given, mask)
    sampled = mask | (logp < 0)
    behavior = np.where(sampled, logp, np.nan).astype(np.float32)
    versions = np.where(sampled, _version(given, version, needed=bool(sampled.any())), -1)
    drawn = Tokens(np.asarray(tokens[prompt_length:], np.int32), sampled, mask, behavior, versions)
    return Tokens.context(tokens[:prompt_length]) + drawn, prompt_length


def _mask(given: SlimeSample, response: int) -> NDArray[np.bool_]:
    if given.loss_mask is None:
        return np.ones(response, bool)
    mask = list(given.loss_mask)
    if len(mask) != response:
        raise ValueError(f"sample.loss_mask has {len(mask)} numbers for {response} response tokens")
    if not set(mask) <= {0, 1}:
        raise ValueError(f"sample.loss_mask must hold 0 and 1, got {sorted(set(mask) - {0, 1})[0]!r}")
    return np.asarray(mask, bool)


def _log_probs(given: SlimeSample, mask: NDArray[np.bool_]) -> NDArray[np.float64]:
    """One a response token, 0 where there is none."""
    if given.rollout_log_probs is None:
        if mask.any():
            raise ValueError(
                f"sample.rollout_log_probs is None, but {int(mask.sum())} tokens are trained: ask the engine "
                'for them (`"return_logprob": True`, then meta_info["output_token_logprobs"])'
            )
        return np.zeros(len(mask))
    logp = np.asarray(given.rollout_log_probs, np.float64)
    if len(logp) != len(mask):
        raise ValueError(f"sample.rollout_log_probs has {len(logp)} numbers for {len(mask)} response tokens")
    wrong = np.flatnonzero(mask & ~((logp <= 0) & np.isfinite(logp)))
    if wrong.size:
        at = int(wrong[0])
        raise ValueError(
            f"sample.rollout_log_probs[{at}] = {logp[at]} of a trained token; expected a log-prob"
        )
    return np.nan_to_num(logp, nan=0.0)


def _version(given: SlimeSample, version: int | None, *, needed: bool) -> int:
    said = set(given.weight_versions)
    if len(said) > 1:
        raise ValueError(f"sample.weight_versions are {sorted(said)}: which token is of which is not told")
    if said:
        return int(said.pop())
    if version is None and needed:
        raise ValueError("sample.weight_versions is empty, and no engine of this run was asked")
    return version or 0


def _extras(given: SlimeSample) -> dict[str, NDArray[Any]]:
    extras: dict[str, NDArray[Any]] = {}
    if given.rollout_top_p_token_offsets is not None:
        offsets = np.asarray(given.rollout_top_p_token_offsets, np.int64)
        ids = np.asarray(given.rollout_top_p_token_ids, np.int32)
        if len(offsets) != given.response_length + 1 or offsets[0] != 0 or offsets[-1] != len(ids):
            raise ValueError(
                f"sample.rollout_top_p_token_offsets must rise from 0 to {len(ids)} in "
                f"{given.response_length + 1} numbers, got {len(offsets)}"
            )
        extras |= {"top_p_token_ids": ids, "top_p_token_offsets": offsets}
    if given.rollout_routed_experts is not None:
        extras["routed_experts"] = np.asarray(given.rollout_routed_experts)
    return extras
