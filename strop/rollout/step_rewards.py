"""Where steps and turns end, in tokens, and what each is worth: two arrays on the sample."""

from dataclasses import dataclass, field

import numpy as np

from strop.errors import RewardFailed
from strop.render.token_texts import Decode, token_texts
from strop.rewards.returned import checked
from strop.sample import STEP_ENDS, STEP_REWARDS, Sample, Steps


@dataclass
class TurnRewards:
    """What an environment gave so far, with the replies of the model that it gave it for."""

    rewards: list[float] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def add(self, reward: object, *, sample: Sample) -> None:
        """For the reply that ends with the sample's last token so far. Raises RewardFailed for what is no
        number."""
        self.rewards.append(checked(reward, "the reward given").value)
        self.ends.append(sample.response_length - 1)
        _put(sample, self.rewards, self.ends)

    @property
    def total(self) -> float | None:
        """What the episode is worth; None if nothing was given."""
        return sum(self.rewards) if self.rewards else None


def put_steps(sample: Sample, steps: Steps, decode: Decode) -> None:
    """Note on the sample at which token each step ends. Raises RewardFailed unless each has a score."""
    ids = sample.sequence.ids[sample.prompt_length :].tolist()
    ends = step_ends(token_texts(ids, decode), steps.separator)
    if len(ends) != len(steps.scores):
        raise RewardFailed(
            f"the reward returned {len(steps.scores)} scores for the {len(ends)} steps that "
            f"{steps.separator!r} parts the response into; see strop.rewards.steps.split_steps"
        )
    _put(sample, list(steps.scores), ends)


def step_ends(texts: list[str], separator: str) -> list[int]:
    """[K] the token that completes the separator behind each step, of tokens with these texts; the last step
    ends with the last token, which may be an end of turn without text.

    No id is looked at: a separator may be a token, several, or a part of one.
    """
    end_of_token = np.cumsum([len(text) for text in texts])
    ends, position = [], 0
    for part in "".join(texts).split(separator):
        position += len(part) + len(separator)
        if part.strip():
            ends.append(int(np.searchsorted(end_of_token, position)))
    return [*ends[:-1], len(texts) - 1] if ends else []


def _put(sample: Sample, rewards: list[float], ends: list[int]) -> None:
    sample.extras[STEP_REWARDS] = np.array(rewards, np.float64)
    sample.extras[STEP_ENDS] = np.array(ends, np.int64)
