"""slime's `Sample`: the record that functions written against slime fill, field by field.

It holds what a function says; `convert.py` checks it against strop's own `Sample` on the way back.
"""

from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from strop import sample as records
from strop.growth import Growth, grow
from strop.sample import Message, Prompt
from strop.tokens import Tokens

_STATUS_OF_FINISH = {
    "stop": records.Status.COMPLETED,
    "length": records.Status.TRUNCATED,
    "abort": records.Status.ABORTED,
}


@dataclass
class CacheInfo:
    """Tokens of prompts, and how many of them an engine had in its cache."""

    cached_tokens: int = 0
    total_prompt_tokens: int = 0

    def add(self, meta_info: dict[str, Any]) -> None:
        self.cached_tokens += int(meta_info.get("cached_tokens", 0))
        self.total_prompt_tokens += int(meta_info.get("prompt_tokens", 0))


@dataclass
class Sample:
    """One trajectory of one prompt, with slime's fields and their defaults."""

    Status = records.Status
    SpecInfo = records.SpecInfo
    PrefixCacheInfo = CacheInfo

    group_index: int | None = None
    index: int | None = None
    rollout_id: int | None = None
    prompt: str | list[Message] = ""
    tokens: list[int] = field(default_factory=list)
    multimodal_inputs: dict[str, Any] | None = None
    multimodal_train_inputs: dict[str, Any] | None = None
    multimodal_train_input_id: str | None = None
    apply_chat_template_kwargs: dict[str, Any] = field(default_factory=dict)
    response: str = ""
    response_length: int = 0
    label: Any = None
    reward: float | dict[str, Any] | None = None
    loss_mask: list[int] | None = None
    """One a response token: 1 is trained. None: all are."""
    weight_versions: list[str] = field(default_factory=list)
    rollout_log_probs: list[float] | None = None
    """One a response token, 0.0 on those that the model did not make."""
    rollout_top_p_token_ids: list[int] | None = None
    rollout_top_p_token_offsets: list[int] | None = None
    rollout_routed_experts: Any = None
    remove_sample: bool = False
    teacher_log_probs: list[float] | None = None
    status: records.Status = records.Status.PENDING
    metadata: dict[str, Any] = field(default_factory=dict)
    generate_function_path: str | None = None
    custom_rm_path: str | None = None
    train_metadata: dict[str, Any] | None = None
    session_id: str | None = None
    non_generation_time: float = 0.0
    spec_info: records.SpecInfo = field(default_factory=records.SpecInfo)
    prefix_cache_info: CacheInfo = field(default_factory=CacheInfo)
    task: Prompt | None = field(default=None, repr=False, compare=False)
    """strop's own: the prompt that the sample is of."""

    def to_dict(self) -> dict[str, Any]:
        """Every field of slime's, the status as text."""
        own = {f.name: self.__dict__[f.name] for f in fields(self) if f.name != "task"}
        infos = {name: asdict(own[name]) for name in ("spec_info", "prefix_cache_info")}
        return {**own, **infos, "status": records.Status(self.status).value}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Sample":
        """What `to_dict` made; keys that slime's sample does not have become attributes, as there."""
        given = dict(data)
        given["status"] = records.Status(given.get("status", records.Status.PENDING))
        given["spec_info"] = records.SpecInfo(**given.get("spec_info", {}))
        given["prefix_cache_info"] = CacheInfo(**given.get("prefix_cache_info", {}))
        names = {f.name for f in fields(cls)}
        sample = cls(**{name: value for name, value in given.items() if name in names})
        sample.__dict__.update({name: value for name, value in given.items() if name not in names})
        return sample

    def get_reward_value(self, args: Any) -> Any:
        """What to train on: the reward, or its entry `args.reward_key`. ValueError names what there is."""
        if not args.reward_key:
            return self.reward
        if not isinstance(self.reward, dict) or args.reward_key not in self.reward:
            has = ", ".join(map(repr, self.reward)) if isinstance(self.reward, dict) else repr(self.reward)
            raise ValueError(f"reward has no {args.reward_key!r} (--reward-key); it has {has}")
        return self.reward[args.reward_key]

    @property
    def effective_response_length(self) -> int:
        """Trained response tokens."""
        return self.response_length if self.loss_mask is None else sum(self.loss_mask)

    def append_response_tokens(  # noqa: PLR0913 - slime's signature
        self,
        args: object = None,  # noqa: ARG002 - slime passes it; nothing here depends on it
        *,
        tokens: list[int],
        log_probs: list[float] | None = None,
        trainable: bool = True,
        meta_info: dict[str, Any] | None = None,
        text: str = "",
        update_terminal_info: bool = True,
    ) -> None:
        """Grow the response, mask and log-probs with it; see `strop.Sample.append_response_tokens`. Raises
        ValueError, the sample unchanged, when something does not fit."""
        reply = meta_info or {}
        added = Growth(tokens=tokens, log_probs=log_probs, trainable=trainable, meta_info=reply)
        mask, known = self._so_far()
        # What the earlier tokens are is checked when the sample is given back; here their number counts.
        earlier = Tokens.context(self.tokens)
        sequence, extras = grow(earlier, len(self.tokens) - self.response_length, self._extras(), added)
        self.spec_info.count(reply)
        self.tokens = sequence.ids.tolist()
        self.response_length += len(tokens)
        self.loss_mask = mask + [int(trainable)] * len(tokens)
        self.rollout_log_probs = known + (list(log_probs) if log_probs is not None else [0.0] * len(tokens))
        self._put(extras)
        self.response += text
        self._note(reply, update_terminal_info=update_terminal_info)

    def _so_far(self) -> tuple[list[int], list[float]]:
        """Mask and log-probs of the response before it grows."""
        mask = [1] * self.response_length if self.loss_mask is None else list(self.loss_mask)
        if self.rollout_log_probs is None and any(mask):
            raise ValueError(
                f"append_response_tokens: {self.response_length} earlier response tokens have no log-probs; "
                "ask for them (return_logprob) or mask them"
            )
        known = self.rollout_log_probs or [0.0] * self.response_length
        if not len(mask) == len(known) == self.response_length:
            raise ValueError(
                f"append_response_tokens: {self.response_length} response tokens, {len(mask)} in loss_mask, "
                f"{len(known)} in rollout_log_probs"
            )
        return mask, list(known)

    def _extras(self) -> dict[str, Any]:
        extras = {}
        if self.rollout_top_p_token_offsets is not None:
            extras["top_p_token_ids"] = np.asarray(self.rollout_top_p_token_ids, np.int32)
            extras["top_p_token_offsets"] = np.asarray(self.rollout_top_p_token_offsets, np.int64)
        if self.rollout_routed_experts is not None:
            extras["routed_experts"] = np.asarray(self.rollout_routed_experts)
        return extras

    def _put(self, extras: dict[str, Any]) -> None:
        if "top_p_token_offsets" in extras:
            self.rollout_top_p_token_ids = extras["top_p_token_ids"].tolist()
            self.rollout_top_p_token_offsets = extras["top_p_token_offsets"].tolist()
        self.rollout_routed_experts = extras.get("routed_experts")

    def _note(self, reply: dict[str, Any], *, update_terminal_info: bool) -> None:
        self.prefix_cache_info.add(reply)
        if "weight_version" in reply:
            self.weight_versions.append(str(reply["weight_version"]))
        finish = reply.get("finish_reason")
        if update_terminal_info and finish is not None:
            self.status = _STATUS_OF_FINISH.get(finish["type"], self.status)
