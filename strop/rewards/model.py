"""`Model`: what a trained reward model says of a response, asked within the run."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from strop.errors import ConfigError, DataError
from strop.nn.catalog import max_positions, model_path
from strop.render.base import Renderer
from strop.render.open import open_renderer
from strop.render.same_tokens import mean_the_same
from strop.rewards.asking import Asking, Host, ScoreEnds
from strop.rewards.base import RewardRefused
from strop.sample import Prompt, Sample
from strop.tokens import Tokens

if TYPE_CHECKING:
    from strop.engines.local.engine import LocalEngine

_FLOAT = 4


@dataclass
class Model:
    """What a reward model gives a response: its score at the last token, times `scale`.

    `path`: the checkpoint of a run with `algo.type = "reward_model"`. It reads the policy's own ids, prompt
    and response, where the two tokenizers mean the same by them. Where they do not, `from_text = true` lets
    it read the text of the response instead, in its own chat template. With `together = true` and
    `reward.group = true` the samples of a group are one batch, in which their prompt is computed once.
    """

    asking: Asking = field(repr=False)
    path: str
    scale: float = 1.0
    from_text: bool = False
    together: bool = False
    _place: Path = field(init=False, repr=False)
    _host: Host | None = field(init=False, default=None, repr=False)
    _score: ScoreEnds | None = field(init=False, default=None, repr=False)
    _renderer: Renderer | None = field(init=False, default=None, repr=False)

    def __post_init__(self) -> None:
        try:
            self._place = model_path(self.path)
        except ConfigError as wrong:
            raise ConfigError(f"the reward's {wrong}") from wrong
        self.asking.admit(self)

    async def __call__(self, judged: Sample | list[Sample]) -> float | list[float]:
        """Of one finished sample; with `together`, of those of a group. Raises RewardFailed."""
        if isinstance(judged, list):
            return await self._scores(judged)
        (score,) = await self._scores([judged])
        return score

    def prepare(self) -> None:
        """See `Guest`."""
        from strop.nn.value_head import check_head  # with torch, which nothing before this needs

        check_head(self._place, key="reward.options.path")

    def enter(self, host: Host) -> "LocalEngine | None":
        """See `Guest`. Raises ConfigError for a model that cannot read the policy's ids."""
        if self.from_text:
            self._renderer = open_renderer(self._place)
        elif not mean_the_same(self._place, host.policy):
            raise ConfigError(
                f'reward.options.path = "{self.path}" has another tokenizer than the policy, whose ids it '
                "would read; set reward.options.from_text = true to show it the text of responses"
            )
        self._host, self._score = host, host.open_scorer(self._place)
        return None

    def size_bytes(self) -> int:
        """See `Guest`."""
        from strop.nn.loading import outline

        return sum(parameter.numel() for _, parameter in outline(self._place).named_parameters()) * _FLOAT

    async def _scores(self, samples: Sequence[Sample]) -> list[float]:
        if self._host is None or self._score is None:
            raise RewardRefused(
                f"reward model {self.path}: the run did not begin with it; name it in reward.fn or "
                "reward.weights"
            )
        read = [self._as_read(sample) for sample in samples]
        scores = await self._host.compute(self._score, read)
        if not all(math.isfinite(score) for score in scores):
            raise RewardRefused(f"reward model {self.path}: its scores are not finite")
        return [self.scale * score for score in scores]

    def _as_read(self, sample: Sample) -> Sample:
        """By its own ids, or those of its text. Raises RewardRefused for more than the model takes."""
        if self._renderer is not None:
            messages = sample.prompt if isinstance(sample.prompt, str) else tuple(sample.prompt)
            prompt = Prompt(id=sample.prompt_id, messages=messages)
            try:
                said = self._renderer.said(prompt, sample.response, turns="last").drawn
            except DataError as wrong:
                raise RewardRefused(f"reward model {self.path}: {wrong}") from wrong
            sample = replace(
                sample, sequence=Tokens.context(said.ids), prompt_length=said.prompt_length, extras={}
            )
        size, longest = len(sample.sequence), max_positions(self._place)
        if size > longest:
            raise RewardRefused(
                f"reward model {self.path}: a prompt and response of {size} tokens are more than the "
                f"{longest} that it takes; lower rollout.max_response_tokens"
            )
        return sample
