"""All that can be found wrong before a run begins: files, functions, model, data. Torch is not needed."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from strop.config.tree import Config
from strop.envs.base import Environment
from strop.envs.open import open_env
from strop.nn.catalog import TINY, model_path
from strop.plugins import resolve
from strop.prompts.base import PromptSource
from strop.prompts.open import open_eval_set, open_prompts
from strop.render.base import Renderer
from strop.render.open import check_tokenizer, open_renderer
from strop.rewards.call import Scorer
from strop.rewards.open import open_reward
from strop.rollout.group import Generate
from strop.rollout.keep import Keep, open_keep
from strop.runtime.plan import Machine, Plan, make_plan
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
    """Open and check every part; cheap checks first. Raises InputError, with nothing written but, for
    `model = "tiny"`, the model."""
    model = find_model(config.model)
    scorer, make_env, keep = open_reward(config.reward), open_env(config.env), open_keep(config.rollout.keep)
    generate = config.rollout.generate and resolve(
        config.rollout.generate, key="rollout.generate", names={}, group="strop.generate"
    )
    eval_sets = {section.name: open_eval_set(section, config.prompts) for section in config.eval.datasets}
    source = open_prompts(config.prompts)
    renderer = open_renderer(model, chat_template=config.prompts.chat_template)
    if config.prompts.max_tokens is not None:
        source = open_prompts(config.prompts, renderer=renderer)
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


def find_model(name: str) -> Path:
    """The model's directory; `tiny` is made when it is not there. Raises ConfigError."""
    path = model_path(name)
    if name == TINY and not path.is_dir():
        from strop.nn.tiny import make_tiny

        make_tiny(path)
    check_tokenizer(path)
    return path
