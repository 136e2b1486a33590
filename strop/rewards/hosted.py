"""`Hosted`: a model that answers within a run: the policy, or another one on the same compute thread."""

import itertools
from typing import TYPE_CHECKING

import numpy as np

from strop.engines.base import Request
from strop.errors import TooLong
from strop.nn.catalog import fetched, model_path
from strop.render.base import Renderer
from strop.render.open import open_renderer
from strop.render.stop_texts import special_ids
from strop.rewards.asking import Host, Question
from strop.rewards.base import RewardRefused
from strop.rewards.judge_parse import without
from strop.sample import Prompt, Sampling

if TYPE_CHECKING:
    from strop.engines.local.engine import LocalEngine

POLICY = "policy"
"""Name of the model that is trained, as it is at the time."""
_FLOAT = 4


class Hosted:
    """Weights and a KV cache of its own beside the policy's, unless it is the policy.

    Serve the engine of a model beside the policy behind the policy's: the batches of both are then functions
    of what is asked alone, and a resumed run is answered alike. Raises ConfigError for a model that can only
    be missing.
    """

    def __init__(self, model: str, sampling: Sampling, *, cache_tokens: int) -> None:
        self._name, self._sampling, self._cache_tokens = model, sampling, cache_tokens
        self._path = None if model == POLICY else model_path(model)
        self._engine: LocalEngine | None = None
        self._renderer: Renderer | None = None
        self._count = itertools.count()

    def prepare(self) -> None:
        """See `Guest`; a model that is not there is made or fetched."""
        if self._path is None:
            return
        if not self._path.is_dir():
            self._path = fetched(self._name)
        from strop.nn.loading import outline  # with torch, which nothing before this needs

        self._renderer = open_renderer(self._path)
        outline(self._path)

    def enter(self, host: Host) -> "LocalEngine | None":
        """See `Guest`."""
        if self._path is None:
            self._engine, self._renderer = host.engine, host.renderer
            return None
        import torch

        from strop.engines.local.engine import LocalEngine
        from strop.nn.loading import load_model

        renderer = self._renderer or open_renderer(self._path)
        self._renderer, self._engine = (
            renderer,
            LocalEngine(
                load_model(self._path, torch.float32),
                host.compute,
                max_tokens=self._cache_tokens,
                stop_ids=renderer.stop_ids,
                decode=renderer.decode,
            ),
        )
        return self._engine

    def size_bytes(self) -> int:
        """See `Guest`."""
        if self._path is None:
            return 0
        from strop.nn.loading import outline

        model = outline(self._path)
        weights = sum(parameter.numel() for _, parameter in model.named_parameters())
        cached = model.num_layers * 2 * model.num_kv_heads * model.head_dim
        return (weights + cached * self._cache_tokens) * _FLOAT

    async def ask(self, question: Question) -> str:
        """See `Asked`."""
        if self._engine is None or self._renderer is None:
            raise RewardRefused(
                f"judge {self._name}: the run did not begin with it; name it in reward.fn or reward.weights"
            )
        # A response can spell the end of a turn; read as that, it would let what follows speak for the judge.
        text = without(question.text, special_ids(self._renderer))
        ids = self._renderer.prompt(Prompt(id=f"judge {self._name}", messages=text))
        request = Request(
            id=f"judge/{next(self._count)}",
            ids=np.array(ids, np.int32),
            sampling=self._sampling,
            seed=question.noise,
        )
        try:
            completion = await self._engine.generate(request)
        except TooLong as caught:
            raise RewardRefused(self._too_long(len(ids))) from caught
        return self._renderer.decode(completion.ids.tolist())

    async def close(self) -> None:
        """Whoever serves its engine ends it."""

    def _too_long(self, num_ids: int) -> str:
        key = "engine.max_tokens" if self._path is None else "its option cache_tokens"
        return (
            f"judge {self._name}: a question of {num_ids} tokens and {self._sampling.max_tokens} to answer "
            f"it are more than it takes; raise {key} if the model takes more, or lower its max_tokens or "
            "rollout.max_response_tokens"
        )
