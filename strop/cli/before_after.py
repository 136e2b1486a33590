"""Which prompts `strop show` puts side by side: the same prompt at two steps, where it was seen at both."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from strop.cli.arguments import whole_number
from strop.errors import ConfigError
from strop.sample import Sample
from strop.store.reader import RunReader
from strop.store.samples import Advantages


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for."""

    run: Path
    steps: tuple[str, ...]
    """Numbers, or `last`."""
    prompt: str | None
    """A prompt's id; None: the first few."""
    num_prompts: int
    dataset: str | None
    """A held-out set; None: training samples, where they answer the request."""


@dataclass(frozen=True, slots=True)
class Scene:
    """The samples of one prompt at one step."""

    when: str
    samples: list[Sample]
    advantages: Advantages


@dataclass(frozen=True, slots=True)
class View:
    """Scenes by prompt, in the order of the run."""

    note: str
    """What is shown, when it is not what one would expect; else empty."""
    prompts: list[list[Scene]]


def choose(reader: RunReader, request: Request) -> View:
    """The scenes that answer the request. Raises ConfigError when there are none, and says what there is."""
    if request.dataset is not None:
        return _held_out(reader, request, request.dataset, note="")
    training = _training(reader, request)
    shared = _shared(training, request)
    if shared:
        return View("", shared)
    for dataset in reader.eval_sets():
        if request.prompt is None or _knows(reader, dataset, request.prompt):
            note = f"no prompt was trained on at each of these steps; held-out prompts of {dataset} instead"
            return _held_out(reader, request, dataset, note=note)
    found = [[scene] for scenes in training for scene in _first(scenes, request)]
    if not found:
        raise ConfigError(_no_such_prompt(request, training))
    return View("no prompt was trained on at each of these steps; the first of each instead", found)


def _training(reader: RunReader, request: Request) -> list[dict[str, Scene]]:
    stored = reader.sample_steps()
    if not stored:
        raise ConfigError(f"{reader.path}: no samples are stored yet")
    steps = dict.fromkeys(_step(text, stored[-1]) for text in request.steps)
    return [_by_prompt(reader.samples(step), reader.advantages(step), f"step {step}") for step in steps]


def _held_out(reader: RunReader, request: Request, dataset: str, *, note: str) -> View:
    stored = reader.eval_steps(dataset) if dataset in reader.eval_sets() else []
    if not stored:
        there = ", ".join(reader.eval_sets()) or "none"
        raise ConfigError(
            f"--eval {dataset}: {reader.path} has no samples of it; held-out sets there: {there}"
        )
    steps = dict.fromkeys(_nearest(_step(text, stored[-1]), stored) for text in request.steps)
    scenes = [_by_prompt(reader.eval_samples(dataset, step), {}, f"after {step} steps") for step in steps]
    shared = _shared(scenes, request)
    if not shared:
        raise ConfigError(_no_such_prompt(request, scenes))
    return View(note, shared)


def _step(text: str, last: int) -> int:
    return last if text == "last" else whole_number("--step", text, least=0)


def _nearest(step: int, stored: Sequence[int]) -> int:
    """The evaluation at or before `step`: of the weights that it began from or of older ones."""
    return max((s for s in stored if s <= step), default=stored[0])


def _by_prompt(samples: list[Sample], advantages: Advantages, when: str) -> dict[str, Scene]:
    scenes: dict[str, Scene] = {}
    for sample in samples:
        scenes.setdefault(sample.prompt_id, Scene(when, [], advantages)).samples.append(sample)
    return scenes


def _shared(steps: list[dict[str, Scene]], request: Request) -> list[list[Scene]]:
    """Prompts with a scene at every step."""
    wanted = [request.prompt] if request.prompt is not None else list(steps[0])
    both = [[scenes[name] for scenes in steps] for name in wanted if all(name in scenes for scenes in steps)]
    return both[: request.num_prompts]


def _first(scenes: dict[str, Scene], request: Request) -> list[Scene]:
    if request.prompt is not None:
        return [scenes[request.prompt]] if request.prompt in scenes else []
    return list(scenes.values())[: request.num_prompts]


def _knows(reader: RunReader, dataset: str, prompt: str) -> bool:
    first = reader.eval_samples(dataset, reader.eval_steps(dataset)[0])
    return any(sample.prompt_id == prompt for sample in first)


def _no_such_prompt(request: Request, steps: list[dict[str, Scene]]) -> str:
    there = list(dict.fromkeys(name for scenes in steps for name in scenes))
    more = f" and {len(there) - 5} more" if len(there) > 5 else ""
    return f"--prompt {request.prompt}: not there; prompts at these steps: {', '.join(there[:5])}{more}"
