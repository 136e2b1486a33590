"""All that can be found wrong before a run begins: files, functions, model, data. No weights are loaded."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from strop.config.tree import Config
from strop.engines.local.capacity import ROUNDING, longest_sequence
from strop.envs.base import Environment
from strop.envs.open import open_env
from strop.errors import DataError
from strop.nn.catalog import TINY, max_positions, model_path
from strop.plugins import resolve
from strop.prompts.base import PromptSource
from strop.prompts.open import open_eval_set, open_prompts
from strop.render.base import Renderer
from strop.render.open import check_tokenizer, open_renderer
from strop.rewards.call import Scorer
from strop.rewards.open import open_reward
from strop.rollout.group import Generate
from strop.rollout.keep import Keep, open_keep
from strop.runtime.machine import Machine
from strop.runtime.plan import Plan, make_plan
from strop.sample import Prompt, Sampling


@dataclass(frozen=True, slots=True)
class Prepared:
    """The parts of a run that need no torch, all checked."""

    config: Config
    plan: Plan
    model: Path
    renderer: Renderer
    source: PromptSource
    eval_sets: dict[str, list[Prompt]]
    scorer: Scorer
    make_env: Callable[[], Environment]
    keep: Keep | None
    generate: Generate | None

    def sampling(self, temperature: float) -> Sampling:
        """With the run's limits."""
        rollout = self.config.rollout
        return Sampling(rollout.max_response_tokens, temperature, tuple(rollout.stop_token_ids))


def prepare(config: Config) -> Prepared:
    """Open and check every part; cheap checks first. Raises InputError.

    Nothing is written but the model `tiny`, if it is not there when all else is right.
    """
    model = model_path(config.model)
    if config.model != TINY:
        check_tokenizer(model)
    scorer, make_env, keep = open_reward(config.reward), open_env(config.env), open_keep(config.rollout.keep)
    generate = config.rollout.generate and resolve(
        config.rollout.generate, key="rollout.generate", names={}, group="strop.generate"
    )
    eval_sets = {section.name: open_eval_set(section, config.prompts) for section in config.eval.datasets}
    source = open_prompts(config.prompts)
    if config.model == TINY and not model.is_dir():
        from strop.nn.tiny import make_tiny

        make_tiny(model)
    renderer = open_renderer(model, chat_template=config.prompts.chat_template)
    if config.prompts.max_tokens is not None:
        source = open_prompts(config.prompts, renderer=renderer)
    room = _Room(config, max_positions(model))
    room.check(_look_ahead(source, config.rollout.batch_size), renderer, where="prompts")
    for name, prompts in eval_sets.items():
        room.check(prompts, renderer, where=f"eval.datasets.{name}")
    from strop.nn.loading import check_model  # with torch, which nothing before this needs

    check_model(model)
    return Prepared(
        config=config,
        plan=make_plan(config, Machine.here()),
        model=model,
        renderer=renderer,
        source=source,
        eval_sets=eval_sets,
        scorer=scorer,
        make_env=make_env,
        keep=keep,
        generate=generate or None,
    )


def _look_ahead(source: PromptSource, n: int) -> list[Prompt]:
    """Every prompt of a data set, the first `n` of a source without end; the position stays."""
    position = source.state()
    prompts = source.next(len(source) or n)
    source.restore(position)
    return prompts


@dataclass(frozen=True, slots=True)
class _Room:
    """How long a prompt may be; an environment's own messages come on top, and are met in the run."""

    config: Config
    max_positions: int

    def check(self, prompts: list[Prompt], renderer: Renderer, *, where: str) -> None:
        """Raises DataError for one that cannot be rendered, or for the longest if it leaves no room for the
        response."""
        cache, response = self.config.engine.max_tokens, self.config.rollout.max_response_tokens
        lengths = [len(renderer.prompt(prompt)) for prompt in prompts]
        longest, held = max(lengths), longest_sequence(cache, self.max_positions)
        if longest + response > held:
            raise DataError(
                f"{where}: {prompts[lengths.index(longest)].id} has {longest} tokens, and with "
                f"rollout.max_response_tokens = {response} more than the {held} that fit (engine.max_tokens "
                f"= {cache}, the model takes {self.max_positions}); {self._way_out(lengths, held, where)}"
            )

    def _way_out(self, lengths: list[int], held: int, where: str) -> str:
        response = self.config.rollout.max_response_tokens
        ways = ["shorten it", "lower rollout.max_response_tokens"]
        if where == "prompts" and self.config.prompts.files and min(lengths) + response <= held:
            ways = [f"set prompts.max_tokens = {held - response} to leave such rows out", *ways[1:]]
        needed = max(lengths) + response
        if needed <= self.max_positions:
            ways.append(f"raise engine.max_tokens to {-(-needed // ROUNDING) * ROUNDING}")
        return ", or ".join(ways)
