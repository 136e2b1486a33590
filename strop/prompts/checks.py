"""What must hold of the prompts of a run beside the form of their rows."""

from collections.abc import Sequence
from dataclasses import dataclass

from strop.config.tree import Config, EvalSet, Rollout
from strop.engines.local.capacity import ROUNDING, longest_sequence
from strop.errors import DataError, RunError
from strop.prompts.rows import BUDGET
from strop.render.base import Renderer
from strop.sample import Prompt
from strop.store.json_text import encode_exact


@dataclass(frozen=True, slots=True)
class Room:
    """How long a prompt may be; an environment's own messages come on top, and are met in the run."""

    config: Config
    max_positions: int
    """Of the model."""

    def check(
        self, prompts: Sequence[Prompt], renderer: Renderer, *, where: str, dataset: EvalSet | None = None
    ) -> None:
        """Raises DataError for one that cannot be rendered, for one that asks for more response than there
        is, and for the longest if it leaves no room for the response. `dataset`: whose prompts they are."""
        budget = _Budget.of(dataset, self.config.rollout)
        lengths = [len(renderer.prompt(prompt)) for prompt in prompts]
        for prompt, tokens in zip(prompts, lengths, strict=True):
            budget.check(prompt, tokens, where=where)
        needed = [
            tokens + budget.response_of(prompt, tokens)
            for prompt, tokens in zip(prompts, lengths, strict=True)
        ]
        held = longest_sequence(self.config.engine.max_tokens, self.max_positions)
        if max(needed) > held:
            worst = needed.index(max(needed))
            response, cache = needed[worst] - lengths[worst], self.config.engine.max_tokens
            raise DataError(
                f"{where}: {prompts[worst].id} has {lengths[worst]} tokens, and with "
                f"{budget.key} = {response} more than the {held} that fit (engine.max_tokens = {cache}, the "
                f"model takes {self.max_positions}); {self._way_out(lengths, held, budget, where=where)}"
            )

    def _way_out(self, lengths: list[int], held: int, budget: "_Budget", *, where: str) -> str:
        ways = ["shorten it", f"lower {budget.key}"]
        section = self.config.prompts
        has_rows = bool(section.files) or any(part.files for part in section.mixture)
        if where == "prompts" and has_rows and min(lengths) + budget.most <= held:
            ways = [f"set prompts.max_tokens = {held - budget.most} to leave such rows out", *ways[1:]]
        needed = max(lengths) + budget.most
        if needed <= self.max_positions:
            ways.append(f"raise engine.max_tokens to {-(-needed // ROUNDING) * ROUNDING}")
        return ", or ".join(ways)


@dataclass(frozen=True, slots=True)
class _Budget:
    """Tokens of a response at most."""

    key: str
    most: int
    context: int | None
    """`rollout.max_context_tokens`"""

    @classmethod
    def of(cls, dataset: EvalSet | None, rollout: Rollout) -> "_Budget":
        if dataset is not None and dataset.max_response_tokens is not None:
            key = f"eval.datasets.{dataset.name}.max_response_tokens"
            return cls(key, dataset.max_response_tokens, rollout.max_context_tokens)
        return cls("rollout.max_response_tokens", rollout.max_response_tokens, rollout.max_context_tokens)

    def check(self, prompt: Prompt, tokens: int, *, where: str) -> None:
        """Raises DataError when the prompt asks for more than there is, or leaves nothing."""
        own = prompt.metadata.get(BUDGET, self.most)
        if own > self.most:
            raise DataError(
                f"{where}: {prompt.id}: metadata.{BUDGET} = {own} is more than {self.key} = {self.most}, "
                f"which it can only lower; raise {self.key}"
            )
        if self.context is not None and tokens >= self.context:
            raise DataError(
                f"{where}: {prompt.id} has {tokens} tokens, which leaves none of "
                f"rollout.max_context_tokens = {self.context} for a response; raise it, or shorten the prompt"
                + (f" (prompts.max_tokens = {self.context - 1} leaves such rows out)" * (where == "prompts"))
            )

    def response_of(self, prompt: Prompt, tokens: int) -> int:
        own: int = prompt.metadata.get(BUDGET, self.most)
        return own if self.context is None else min(own, self.context - tokens)


def refuse_unstorable(prompts: Sequence[Prompt], *, where: str) -> None:
    """Raises DataError for what samples could not be stored with: a run must not find out after a step."""
    for prompt in prompts:
        parts = {"messages": prompt.messages, "label": prompt.label}
        parts |= {f"metadata.{name}": value for name, value in prompt.metadata.items()}
        for name, value in parts.items():
            try:
                encode_exact(value, f"{where}: {prompt.id}: {name}")
            except RunError as caught:
                raise DataError(str(caught)) from caught
