"""The records that flow through a run (Prompt, Sample, Group), and the checks that they are well formed.

Token ids are the truth and text is a view.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strop.growth import Growth, grow
from strop.tokens import MalformedTokens, Tokens

__all__ = [
    "FORMAT",
    "Group",
    "MalformedTokens",
    "Message",
    "Prompt",
    "Role",
    "Sample",
    "Sampling",
    "Scores",
    "SpecInfo",
    "Status",
    "Steps",
    "Tokens",
    "all_equal",
]

FORMAT = 1
"""Version of the JSON and Parquet forms of these records."""

_NO_TOKENS = Tokens.context([])

Message = dict[str, Any]
"""One chat message: `{"role": …, "content": …}`, as chat templates take it."""


class Status(StrEnum):
    """How a sample stands; values are slime's."""

    PENDING = "pending"
    COMPLETED = "completed"
    TRUNCATED = "truncated"
    """It hit the maximum length."""
    ABORTED = "aborted"
    FAILED = "failed"
    """User code failed; `Sample.error` says how. Never the same as a reward of 0."""


class Role(StrEnum):
    """What a sample is in a group that data gives."""

    RESPONSE = "response"
    CHOSEN = "chosen"
    REJECTED = "rejected"
    DESIRABLE = "desirable"
    UNDESIRABLE = "undesirable"
    SCORED = "scored"
    RANKED = "ranked"
    """One of several; in a prompt's label their order is behind it: `ranked/0` is the best."""
    MISMATCHED = "mismatched"
    """A prompt with the response of another: scored, never trained."""


_STATUS_OF_FINISH = {"stop": Status.COMPLETED, "length": Status.TRUNCATED, "abort": Status.ABORTED}


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn. Recorded on every sample, since the trainer must score with the same values."""

    max_tokens: int
    """Tokens to draw at most, over all turns of a sample; tool tokens count."""
    temperature: float = 1.0
    """0 is greedy; then the recorded log-probs are those at temperature 1."""
    stop_token_ids: tuple[int, ...] = ()
    """Ids that end a turn, beside the renderer's own; the id itself is kept and trained."""
    top_p: float = 1.0
    """Draw from the smallest set of likeliest tokens with this probability."""
    top_k: int = -1
    """Draw from so many likeliest tokens; −1: from all."""
    min_p: float = 0.0
    """Leave out tokens less likely than this times the likeliest."""
    stop: tuple[str, ...] = ()
    """Texts that end a turn once they are in it; the tokens that made them are kept and trained."""
    ignore_eos: bool = False
    """Do not end a turn at the renderer's own ids."""

    @property
    def keeps_all(self) -> bool:
        """Whether log-probs are of the whole distribution, so that no set need be kept: also when greedy."""
        return self.temperature == 0 or (self.top_p == 1 and self.top_k == -1 and self.min_p == 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One task. `messages` is chat messages, or text that is used as it stands."""

    id: str
    """Names the task for good: the same row has the same id in every epoch and run."""
    messages: str | tuple[Message, ...]
    label: Any = None
    metadata: dict[str, Any] = field(default_factory=dict)
    tools: tuple[dict[str, Any], ...] = ()
    media: tuple[str, ...] = ()
    """References to images, video or audio. Reserved: no engine reads them yet."""
    environment: str | None = None
    reward: str | None = None
    sampling: Sampling | None = None
    """Overrides of the run's `env`, `reward` and sampling for this task. Reserved: refused when set."""


@dataclass(slots=True)
class SpecInfo:
    """Counters of speculative decoding, summed over a sample's generation calls; slime's names."""

    spec_accept_token_num: int = 0
    spec_draft_token_num: int = 0
    spec_verify_ct: int = 0
    completion_token_num: int = 0

    def count(self, meta_info: dict[str, Any]) -> None:
        """Add an engine's reply; the counters appear in one only when the engine speculates."""
        if "spec_verify_ct" in meta_info:
            self.spec_accept_token_num += int(meta_info["spec_accept_token_num"])
            self.spec_draft_token_num += int(meta_info["spec_draft_token_num"])
            self.spec_verify_ct += int(meta_info["spec_verify_ct"])
            self.completion_token_num += int(meta_info["completion_tokens"])

    @property
    def accept_rate(self) -> float:
        return self.spec_accept_token_num / self.spec_draft_token_num if self.spec_draft_token_num else 0.0

    @property
    def accept_length(self) -> float:
        return self.completion_token_num / self.spec_verify_ct if self.spec_verify_ct else 0.0


@dataclass(frozen=True, slots=True)
class Steps:
    """What the steps of a response are worth, in order. Steps that hold nothing but white space are none."""

    scores: tuple[float, ...]
    separator: str
    """The text that ends a step; the last one ends with the response."""


STEP_REWARDS, STEP_ENDS = "step_rewards", "step_ends"
"""Of `Sample.extras`: what steps or turns are worth, float64 [K], and the response tokens at which they end,
int64 [K], in order."""


@dataclass(frozen=True, slots=True)
class Scores:
    """A reward with named parts: `value` is trained on, `named` is recorded beside it."""

    value: float
    named: dict[str, float] = field(default_factory=dict)
    steps: Steps | None = None
    """Of a process reward, see `strop.rewards.steps`; trained on with `algo.advantage = "steps"` or
    "turns"."""


@dataclass(slots=True, kw_only=True)
class Sample:
    """One trajectory of one prompt, or one trainable part of it.

    slime's field names read the same: `tokens, response, response_length, loss_mask, rollout_log_probs,
    weight_versions, group_index, rollout_id, …`.
    """

    index: int
    """Counts every sample of the run; orders them and seeds their noise."""
    group_id: int
    prompt_id: str = ""
    trajectory_id: int = -1
    """Samples of one trajectory share it; baselines and denominators are per trajectory. −1: `index`."""
    policy: str = "policy"
    role: str = ""
    """A `Role`, where data gives the group; else empty."""
    prompt: str | list[Message] = ""
    label: Any = None
    sequence: Tokens = field(default_factory=lambda: _NO_TOKENS)
    prompt_length: int = 0
    """Tokens before the first response token."""
    response: str = ""
    """The response as text, for rewards and readers; never tokenised again."""
    status: Status = Status.PENDING
    error: str | None = None
    """What a boundary caught, when status is FAILED."""
    reward: float | None = None
    scores: dict[str, float] = field(default_factory=dict)
    remove_sample: bool = False
    """Not trained, yet counted in its group's baseline (slime's name)."""
    metadata: dict[str, Any] = field(default_factory=dict)
    timing: dict[str, float] = field(default_factory=dict)
    """Seconds by station: `generate_s`, `environment_s`, `reward_s`."""
    sampling: Sampling | None = None
    extras: dict[str, NDArray[Any]] = field(default_factory=dict)
    """Arrays beside the tokens: `top_p_token_ids` with `top_p_token_offsets` (response_length + 1),
    `routed_experts` [len(tokens) − 1, layers, top_k], and `step_rewards` with `step_ends`."""
    media: tuple[str, ...] = ()
    spec_info: SpecInfo = field(default_factory=SpecInfo)

    def __post_init__(self) -> None:
        if self.trajectory_id < 0:
            self.trajectory_id = self.index

    @property
    def response_tokens(self) -> Tokens:
        """Everything after the prompt, tool tokens included."""
        return self.sequence.after(self.prompt_length)

    @property
    def tokens(self) -> list[int]:
        """Prompt and response ids."""
        return [int(i) for i in self.sequence.ids]

    @property
    def response_length(self) -> int:
        return len(self.sequence) - self.prompt_length

    @property
    def loss_mask(self) -> list[int]:
        """One per response token; 1 is trained."""
        return [int(m) for m in self.sequence.mask[self.prompt_length :]]

    @property
    def effective_response_length(self) -> int:
        """Trained response tokens."""
        return int(self.sequence.mask[self.prompt_length :].sum())

    @property
    def rollout_log_probs(self) -> list[float]:
        """One per response token; 0.0 on tokens that the policy did not sample (slime's convention)."""
        return [float(x) for x in np.nan_to_num(self.sequence.behavior[self.prompt_length :], nan=0.0)]

    @property
    def weight_versions(self) -> list[str]:
        """The versions that sampled it, in order, each once per run of equal versions."""
        v = self.sequence.versions[self.sequence.sampled]
        return [str(x) for i, x in enumerate(v) if i == 0 or x != v[i - 1]]

    @property
    def group_index(self) -> int:
        return self.group_id

    @property
    def rollout_id(self) -> int:
        return self.trajectory_id

    @property
    def non_generation_time(self) -> float:
        """Seconds spent outside the engine."""
        return self.timing.get("environment_s", 0.0) + self.timing.get("reward_s", 0.0)

    def append_response_tokens(  # noqa: PLR0913 - slime's signature
        self,
        args: object = None,  # noqa: ARG002 - slime passes it; nothing here depends on it
        *,
        tokens: Sequence[int],
        log_probs: Sequence[float] | None = None,
        trainable: bool = True,
        meta_info: dict[str, Any] | None = None,
        text: str = "",
        update_terminal_info: bool = True,
    ) -> None:
        """Grow the response: the one safe way to build a multi-turn sample, with slime's contract.

        Trainable tokens need a log-prob each; the others must not have any, get mask 0, and read as 0.0 in
        `rollout_log_probs`. `meta_info` is an engine's reply (SGLang's keys): `weight_version`,
        `finish_reason.type` (sets status when `update_terminal_info`), `top_p_token_ids` with
        `top_p_token_offsets`, `routed_experts` with `routed_experts_start_len`, and the `spec_*` counters.
        Raises ValueError, the sample unchanged, when any of it does not fit.
        """
        added = Growth(tokens=tokens, log_probs=log_probs, trainable=trainable, meta_info=meta_info or {})
        self.sequence, self.extras = grow(self.sequence, self.prompt_length, self.extras, added)
        self.spec_info.count(meta_info or {})
        self.response += text
        finish = (meta_info or {}).get("finish_reason")
        if update_terminal_info and finish is not None:
            self.status = _STATUS_OF_FINISH.get(finish["type"], self.status)

    def fail(self, error: Exception) -> None:
        """Record what a boundary caught. A reward given before it counts no more."""
        self.status, self.error, self.reward, self.scores = Status.FAILED, str(error), None, {}


@dataclass(slots=True)
class Group:
    """The samples of one prompt."""

    id: int
    """Counts every group of the run, in the order of admission."""
    prompt: Prompt
    samples: list[Sample]
    tries: int = 0
    """Rounds of its step that came before it (dropped groups are replaced in rounds)."""
    greedy: list[Sample] = field(default_factory=list)
    """The greedy reply to the same prompt, where the algorithm compares with it: rewarded, never trained, and
    in no figure of the group."""

    @property
    def rewards(self) -> list[float]:
        """One per sample; only for groups in which every sample was rewarded."""
        return [s.reward for s in self.samples if s.reward is not None]

    @property
    def trajectory_rewards(self) -> list[float]:
        """One per trajectory, in order: the mean of its samples' rewards, which as a rule are equal."""
        by_trajectory: dict[int, list[float]] = {}
        for sample in self.samples:
            if sample.reward is not None:
                by_trajectory.setdefault(sample.trajectory_id, []).append(sample.reward)
        return [sum(rewards) / len(rewards) for rewards in by_trajectory.values()]

    @property
    def greedy_reward(self) -> float:
        """Of the greedy reply, when it was rewarded: the mean of its samples'."""
        rewards = [s.reward for s in self.greedy if s.reward is not None]
        return sum(rewards) / len(rewards)

    @property
    def has_equal_rewards(self) -> bool:
        """Whether there is nothing to learn from it: trajectories are compared, not their samples."""
        return all_equal(np.array(self.trajectory_rewards))


def all_equal(rewards: NDArray[np.float64]) -> bool:
    """Whether rewards agree to float32's precision.

    Exact equality would be too strict: the mean of eight rewards of 0.1 is not 0.1, and the remainder, once
    divided by an equally small deviation, is an advantage of ordinary size (slime#1674).
    """
    if len(rewards) < 2:
        return True
    return float(np.ptp(rewards)) <= float(np.finfo(np.float32).eps) * float(np.abs(rewards).max())
