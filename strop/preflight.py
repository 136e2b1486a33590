"""All that can be found wrong before a run begins: files, functions, model, data. No weights are loaded."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from strop.compat.open import Slime, open_slime
from strop.config.algo import Algo
from strop.config.algo_rules import BUILT_IN_ADVANTAGES, BUILT_IN_LOSSES
from strop.config.offline import Shape
from strop.config.offline_rules import shape_of
from strop.config.slime_paths import is_slimes
from strop.config.tree import Config, EvalSet, Prompts
from strop.envs.base import Environment
from strop.envs.open import BUILTIN, open_env
from strop.errors import ConfigError, DataError
from strop.nn.catalog import fetched, max_positions, model_path
from strop.offline.rows import RowReader, check_rows
from strop.plugins import check_call, resolve
from strop.prompts.base import PromptSource
from strop.prompts.checks import Room, refuse_unstorable
from strop.prompts.none import NoPrompts
from strop.prompts.open import Opened, drop_long, drop_refused, look_ahead, open_eval_set, open_prompts
from strop.prompts.read import BadRows
from strop.render.base import Renderer
from strop.render.messages import as_messages
from strop.render.open import check_tokenizer, open_renderer
from strop.render.probe import notes, probe
from strop.render.same_tokens import mean_the_same
from strop.render.stop_texts import refuse_special
from strop.rewards.checks import check_eval_set, check_group_size
from strop.rewards.open import open_rewards
from strop.rewards.select import Rewards
from strop.rollout.custom import Generate
from strop.rollout.hooks import Hooks, open_hook
from strop.rollout.keep import Keep, open_keep
from strop.runtime.machine import Machine
from strop.runtime.plan import Plan, make_plan
from strop.sample import Prompt
from strop.train.hint import Hint
from strop.train.teaching import Teaching, check_taught


@dataclass(frozen=True, slots=True)
class Prepared:
    """The parts of a run that are not made of tensors, all checked."""

    config: Config
    plan: Plan
    model: Path
    renderer: Renderer
    source: PromptSource
    eval_sets: dict[str, list[Prompt]]
    rewards: Rewards
    make_env: Callable[[], Environment]
    keep: Keep | None
    generate: Generate | None
    hooks: Hooks
    slime: Slime
    """Functions with slime's signatures; to close."""
    critic: Path | None = None
    """What a critic of its own begins as; None: as the policy, or there is none."""
    teaching: Teaching = field(default_factory=Teaching)
    """The models that teach, and what they are shown."""
    bad_rows: BadRows = field(default_factory=BadRows)
    """Malformed rows that `prompts.on_bad_row` left out."""
    num_too_long: int = 0
    """Rows that `prompts.max_tokens` or `prompts.rows.max_tokens` left out."""
    rows: RowReader | None = None
    """Makes groups of the rows, where they hold what is trained; None: the model answers prompts."""
    num_cut: int = 0
    """Rows that `prompts.rows.max_tokens` cut."""
    template_notes: tuple[str, ...] = ()
    """What the chat template does that this run should know of."""


def prepare(config: Config) -> Prepared:
    """Open and check every part: first functions, then data, then what needs the model's tokenizer, last its
    weights' names and shapes, with torch. Raises InputError.

    Nothing is written but a model that is not there, made or fetched when functions and data are right.
    """
    model = model_path(config.model)
    if model.is_dir():
        check_tokenizer(model)
    slime = open_slime(config, model)
    rewards, make_env = _open_rewards(config, slime), open_env(config.env)
    keep, generate = _open_keep(config.rollout.keep, slime), _open_generate(config.rollout.generate, slime)
    hooks = _open_hooks(config.rollout.hooks, slime)
    _check_algorithm(config.algo)
    reading = _as_read(config)
    eval_sets = _open_eval_sets(reading, rewards)
    opened = Opened(NoPrompts()) if is_slimes(config.prompts.source) else _open_training(reading)
    if not model.is_dir():
        model = fetched(config.model)
        slime.move_model(model)
    if is_slimes(config.prompts.source):
        opened = Opened(slime.source())
    first = look_ahead(opened.source, config.rollout.batch_size)
    renderer = _open_renderer(_as_rendered(config, chain(first, *eval_sets.values())), model)
    _check_stops(config, renderer)
    reader = _row_reader(config, renderer, model)
    if reader is not None:
        rows = check_rows(opened, eval_sets, reader, skip_bad=config.prompts.on_bad_row == "skip")
        opened, num_cut = rows.opened, rows.num_cut
    else:
        opened, num_cut = _check_played(config, opened, eval_sets, _Playing(rewards, renderer, model)), 0
    _check_weights(config, model)
    rewards.prepare()
    critic = None if config.algo.critic.model is None else _critic_path(config.algo.critic.model, model)
    return Prepared(
        config=config,
        plan=make_plan(config, Machine.here()),
        model=model,
        renderer=renderer,
        source=opened.source,
        eval_sets=eval_sets,
        rewards=rewards,
        make_env=make_env,
        keep=keep,
        generate=generate,
        hooks=hooks,
        slime=slime,
        critic=critic,
        rows=reader,
        num_cut=num_cut,
        teaching=_open_teaching(config, model, renderer, opened.source),
        bad_rows=opened.bad,
        num_too_long=opened.num_too_long,
        template_notes=notes(probe(renderer), has_turns=has_turns(config)),
    )


@dataclass(frozen=True, slots=True)
class _Playing:
    """What prompts are played with."""

    rewards: Rewards
    renderer: Renderer
    model: Path


def _check_played(
    config: Config, opened: Opened, eval_sets: dict[str, list[Prompt]], playing: _Playing
) -> Opened:
    """The prompts that are played. Raises InputError for one that cannot be, of training or held out."""
    renderer, rewards = playing.renderer, playing.rewards
    if config.prompts.on_bad_row == "skip":
        opened = drop_refused(opened, renderer.prompt)
    if config.prompts.max_tokens is not None and not is_slimes(config.prompts.source):
        opened = drop_long(opened, renderer, max_tokens=config.prompts.max_tokens)
    ahead = look_ahead(opened.source, config.rollout.batch_size)
    room = Room(config, max_positions(playing.model))
    if ahead:
        room.check(ahead, renderer, where="prompts")
        _check_prompts(config, ahead, rewards, where="prompts")
    for section in config.eval.datasets:
        name, prompts = f"eval.datasets.{section.name}", eval_sets[section.name]
        room.check(prompts, renderer, where=name, dataset=section)
        _check_prompts(config, prompts, rewards, where=name)
    _check_turns(config, next(chain(ahead, *eval_sets.values())), renderer)
    return opened


def _row_reader(config: Config, renderer: Renderer, model: Path) -> RowReader | None:
    shape, size = shape_of(config), config.rollout.samples_per_prompt
    if shape is None:
        return None
    return RowReader(
        renderer,
        config.prompts.rows,
        max_positions(model),
        num_responses=size if shape == "ranked" else None,
        margin_field=config.algo.reward_model.margin_field,
    )


def _open_rewards(config: Config, slime: Slime) -> Rewards:
    if config.loop.steps and shape_of(config) is None:
        check_group_size(config.reward, config.rollout.samples_per_prompt)
    return open_rewards(config.reward, names=slime.rewards, seed=config.loop.seed)


def _as_read(config: Config) -> Config:
    """A generate function of slime's renders its prompts itself, so rows may hold messages in any case."""
    if not is_slimes(config.rollout.generate):
        return config
    prompts = config.prompts.model_copy(update={"chat_template": True})
    return config.model_copy(update={"prompts": prompts})


def _as_rendered(config: Config, prompts: Iterable[Prompt]) -> Prompts:
    """Messages are measured as the template shows them, whoever renders them later."""
    holds_messages = any(not isinstance(prompt.messages, str) for prompt in prompts)
    return (_as_read(config) if holds_messages else config).prompts


def _open_eval_sets(config: Config, rewards: Rewards) -> dict[str, list[Prompt]]:
    for section in config.eval.datasets:
        check_eval_set(config.reward, section)
        if section.reward is not None:
            rewards.require(section.reward, where=f"eval.datasets.{section.name}.reward")
    shape = shape_of(config)
    return {section.name: _eval_set(section, config.prompts, shape) for section in config.eval.datasets}


def _check_algorithm(section: Algo) -> None:
    if section.advantage not in BUILT_IN_ADVANTAGES or section.policy_loss not in BUILT_IN_LOSSES:
        from strop.algo.custom import check_functions  # with torch, which nothing before this needs

        check_functions(section)


def _check_weights(config: Config, model: Path) -> None:
    from strop.nn.loading import outline  # with torch, which nothing before this needs

    vocabulary = outline(model).vocab_size
    for id in config.rollout.stop_token_ids:
        if id >= vocabulary:
            raise ConfigError(
                f"rollout.stop_token_ids: {id} is no id of the model, whose last is {vocabulary - 1}"
            )
    if config.train.lora.rank:
        from strop.nn.lora import check_lora

        check_lora(config.train.lora, model)


def _critic_path(name: str, policy: Path) -> Path:
    """It reads the policy's own ids. Raises ConfigError, as `model` does, and where they mean other text."""
    path = model_path(name)
    path = path if path.is_dir() else fetched(name)
    if not mean_the_same(path, policy):
        raise ConfigError(
            f'algo.critic.model = "{name}" has another tokenizer than the policy, whose ids it would read; '
            "give a model of the same family, or remove it: the critic then begins as the policy"
        )
    return path


def _open_teaching(config: Config, policy: Path, renderer: Renderer, source: PromptSource) -> Teaching:
    """An evaluation learns from nobody."""
    if not config.algo.is_taught or not config.loop.steps:
        return Teaching()
    from strop.nn.teacher_paths import teacher_paths  # with torch, which nothing before this needs

    paths, hint = teacher_paths(config.algo, policy), Hint.of(config, renderer)
    ahead = look_ahead(source, config.rollout.batch_size)
    check_taught(config.algo, ahead, are_all=bool(config.prompts.files or config.prompts.mixture))
    if hint is not None:
        hint.check(ahead, [path or policy for path in paths], config.rollout)
    return Teaching(paths, hint)


def _open_training(config: Config) -> Opened:
    """An evaluation, which is a run of no steps, need not have prompts to train on."""
    given = (config.prompts.files, config.prompts.source, config.prompts.mixture)
    if not config.loop.steps and not any(given):
        return Opened(NoPrompts())
    return open_prompts(config.prompts, shape_of(config))


def _open_renderer(section: Prompts, model: Path) -> Renderer:
    return open_renderer(
        model, chat_template=section.chat_template, template_kwargs=section.chat_template_kwargs
    )


def _eval_set(section: EvalSet, prompts: Prompts, shape: Shape | None) -> list[Prompt]:
    """The prompts of a held-out set; the set's reward is theirs, unless a row names its own."""
    opened = open_eval_set(section, prompts, shape)
    return [replace(prompt, reward=prompt.reward or section.reward) for prompt in opened]


def _open_keep(spec: str | None, slime: Slime) -> Keep | None:
    keep = open_keep(spec, names=slime.keep)
    if keep is not None:
        check_call(keep, ("group",), key=f"rollout.keep = {spec!r}", awaited=False)
    return keep


def _open_generate(spec: str | None, slime: Slime) -> Generate | None:
    if spec is None:
        return None
    generate: Generate = resolve(spec, key="rollout.generate", names=slime.generate, group="strop.generate")
    check_call(generate, ("prompt", "ctx"), key=f"rollout.generate = {spec!r}", awaited=True)
    return generate


def _open_hooks(specs: list[str], slime: Slime) -> Hooks:
    of_step = {spec for spec, _ in slime.step_hooks}
    hooks = [
        (spec, open_hook(spec, key=f"rollout.hooks.{place}", names=slime.hooks))
        for place, spec in enumerate(specs)
        if spec not in of_step
    ]
    return Hooks(hooks, slime.step_hooks)


def _check_prompts(config: Config, prompts: list[Prompt], rewards: Rewards, *, where: str) -> None:
    for own, prompt in {prompt.reward: prompt for prompt in reversed(prompts)}.items():
        if own is not None:
            rewards.require(own, where=f"{where}: the reward of {prompt.id}")
    # An environment or a generate function of the user's own may give the reward itself.
    is_scored = config.rollout.generate is None and config.env.type in BUILTIN
    if is_scored:
        rewards.check_labels(prompts, where=where)
    refuse_unstorable(prompts, where=where)


def has_turns(config: Config) -> bool:
    """Whether an environment answers the model."""
    env = config.env
    return not (env.type == "single_turn" or env.max_turns == 1 or config.rollout.generate is not None)


def _check_stops(config: Config, renderer: Renderer) -> None:
    refuse_special(config.rollout.stop, renderer, key="rollout.stop")
    for section in config.eval.datasets:
        refuse_special(section.stop or [], renderer, key=f"eval.datasets.{section.name}.stop")


def _check_turns(config: Config, prompt: Prompt, renderer: Renderer) -> None:
    """Raises DataError if the template cannot show what an environment answers to a reply."""
    env = config.env
    if not has_turns(config):
        return
    role = env.options.get("role", "tool") if env.type == "calculator" else "user"
    answer = [{"role": role, "content": "an answer"}]
    last_id = [*renderer.stop_ids, *config.rollout.stop_token_ids, 0][0]
    try:
        renderer.follow_up(as_messages(prompt), answer, last_id=last_id)
    except DataError as caught:
        way_out = '; or set env.options.role = "user"' if role == "tool" else ""
        raise DataError(f'env.type = "{env.type}": {caught}{way_out}') from caught
