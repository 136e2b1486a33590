"""`Batch`: one step's samples as 1-D numpy columns, the response tokens of all samples end to end."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from strop.kept import OFFSETS, Kept
from strop.sample import Group, Sample, Status
from strop.tokens import Tokens


@dataclass(slots=True)
class Batch:
    """S samples with N response tokens in all.

    Column order is fixed: groups in the order given, samples by index, tokens by position. Per-token
    columns are float32 [N]; `offsets` [S + 1] says where each sample's tokens begin.
    """

    samples: list[Sample]
    update: NDArray[np.int32]
    """[S] which update of the step trains the sample; a trajectory never straddles updates."""
    num_updates: int
    max_response_tokens: int
    """The constant of `seq_sum_const`."""
    temperature: float
    offsets: NDArray[np.int64] = field(init=False)
    mask: NDArray[np.bool_] = field(init=False)
    """[N] trained tokens; a removed sample has none."""
    behavior: NDArray[np.float32] = field(init=False)
    """[N] log-prob recorded by the sampler, NaN where not sampled."""
    kept: Kept | None = field(init=False)
    """[N] the ids that each token was drawn from; an empty set, or None for all: the whole vocabulary."""
    advantage: NDArray[np.float32] = field(init=False)
    """[N] written by `Algorithm.credit`."""
    scored: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    """[N] each: `old`, `ref`, as far as the algorithm needs them, and what `credit` adds for the loss."""
    greedy: dict[int, float] = field(default_factory=dict)
    """Group id → reward of the greedy reply to its prompt, where the algorithm needs it."""
    for_teacher: "Batch | None" = None
    """The same responses behind the prompts that teachers see; None: behind the same."""

    def __post_init__(self) -> None:
        lengths = [s.response_length for s in self.samples]
        self.offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        masks = [s.sequence.mask[s.prompt_length :] for s in self.samples]
        removed = np.repeat(np.array([s.remove_sample for s in self.samples], bool), lengths)
        self.mask = np.concatenate([*masks, np.zeros(0, bool)]) & ~removed
        behavior = [s.sequence.behavior[s.prompt_length :] for s in self.samples]
        self.behavior = np.concatenate([*behavior, np.zeros(0, np.float32)])
        self.kept = _kept_sets(self.samples)
        self.advantage = np.zeros(self.num_tokens, np.float32)

    @property
    def num_tokens(self) -> int:
        """N: response tokens, tool tokens included."""
        return int(self.offsets[-1])

    @property
    def rewards(self) -> NDArray[np.float64]:
        """[S]"""
        return np.array([s.reward for s in self.samples], np.float64)

    @property
    def groups(self) -> NDArray[np.int64]:
        """[S] group id of each sample."""
        return np.array([s.group_id for s in self.samples], np.int64)

    @property
    def trajectories(self) -> NDArray[np.int64]:
        """[S] trajectory id of each sample."""
        return np.array([s.trajectory_id for s in self.samples], np.int64)

    @property
    def truncated(self) -> NDArray[np.bool_]:
        """[S] samples that hit the maximum length."""
        return np.array([s.status is Status.TRUNCATED for s in self.samples], bool)

    @property
    def sample_of_token(self) -> NDArray[np.int64]:
        """[N] row of the sample that each token belongs to."""
        return np.repeat(np.arange(len(self.samples)), np.diff(self.offsets))

    def spread(self, per_sample: NDArray[np.floating]) -> NDArray[np.float32]:
        """[S] → [N]: the same value on every token of a sample."""
        return per_sample[self.sample_of_token].astype(np.float32)

    def tokens_of(self, row: int) -> slice:
        """Where the tokens of sample `row` stand in the per-token columns."""
        return slice(int(self.offsets[row]), int(self.offsets[row + 1]))


def behind(batch: Batch, prompts: Sequence[Sequence[int]]) -> Batch:
    """The same responses behind other prompts: ids of one for each sample."""
    samples = [
        replace(sample, sequence=Tokens.context(ids) + sample.response_tokens, prompt_length=len(ids))
        for sample, ids in zip(batch.samples, prompts, strict=True)
    ]
    return replace(batch, samples=samples, scored={})


def _kept_sets(samples: list[Sample]) -> Kept | None:
    if not any(OFFSETS in sample.extras for sample in samples):
        return None
    return Kept.joined([Kept.of_extras(sample.extras, sample.response_length) for sample in samples])


def make_batch(
    groups: list[Group], *, num_updates: int, max_response_tokens: int, temperature: float
) -> Batch:
    """Lay the samples of `groups` out, and deal their trajectories to updates, in order and evenly.

    A trajectory stays whole. A group may lie in two updates, when `train.batch_size` is no multiple of the
    group's size; its baseline is still of the whole group, since `credit` sees the whole step. With fewer
    trajectories than updates some updates have no sample.
    """
    samples = [s for group in groups for s in sorted(group.samples, key=lambda s: s.index)]
    ranks: dict[int, int] = {}
    for sample in samples:
        ranks.setdefault(sample.trajectory_id, len(ranks))
    update = [ranks[s.trajectory_id] * num_updates // len(ranks) for s in samples]
    return Batch(
        samples=samples,
        update=np.array(update, np.int32),
        num_updates=num_updates,
        max_response_tokens=max_response_tokens,
        temperature=temperature,
        greedy={group.id: group.greedy_reward for group in groups if group.greedy},
    )
