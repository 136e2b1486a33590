"""`ProceduralSource`: tasks made by a function of a random number generator, without end."""

import hashlib
import random
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from strop.errors import DataError
from strop.plugins import name_of, nearest, user_code
from strop.prompts.rows import Keys, make_prompt, shown, with_own_choices
from strop.randomness import generator
from strop.sample import Prompt

MakeTask = Callable[..., Mapping[str, Any] | Prompt]
"""`(rng, **options) -> {"prompt": …, "label": …, "metadata": …, "tools": …}`; only "prompt" must be there."""

_KEYS = Keys()


class ProceduralSource:
    """Task i is `fn(rng_i, **options)`, with a generator of its own for each i.

    The first task is made twice at the start, and both must be equal: a function that draws from anywhere
    but `rng` could not be resumed. Raises DataError, then and later, for what `fn` gets wrong.
    """

    def __init__(self, fn: MakeTask, *, options: Mapping[str, Any], seed: int) -> None:
        self._fn, self._options, self._seed = fn, dict(options), seed
        self._name = name_of(fn)
        self._id = _series(self._name, self._options, seed)
        self._position = 0
        first, again = self._task(0), self._task(0)
        if first != again:
            raise DataError(
                f"{self._name}: two calls with equal generators made different tasks "
                f"({shown(first.messages)} and {shown(again.messages)}); draw from `rng` only"
            )
        self._fingerprint = _digest([self._id, first.messages])

    def next(self, n: int) -> list[Prompt]:
        """The next `n` tasks."""
        tasks = [self._task(i) for i in range(self._position, self._position + n)]
        self._position += n
        return tasks

    def state(self) -> dict[str, Any]:
        """How many tasks were made, and a fingerprint of the function: name, options, seed, first task."""
        return {"position": self._position, "fingerprint": self._fingerprint}

    def restore(self, state: dict[str, Any]) -> None:
        """Go to a position. Raises DataError if it belongs to another function, other options or seed."""
        if state["fingerprint"] != self._fingerprint:
            raise DataError(
                f"the saved position belongs to other tasks than those of {self._name}; resume with the "
                "function, prompts.options and prompts.seed that the run began with"
            )
        self._position = state["position"]

    def __len__(self) -> int:
        """0: there are no epochs."""
        return 0

    def _task(self, i: int) -> Prompt:
        what = f"{self._name}, task {i}"
        with user_code(DataError, what):
            made = self._fn(self._rng(i), **self._options)
        if isinstance(made, Prompt):
            return with_own_choices(made, where=f"{what}: {made.id}")
        if not isinstance(made, Mapping):
            raise DataError(f"{what}: expected {{'prompt': …, 'label': …}} or a Prompt, got {shown(made)}")
        _check_keys(made, what)
        return make_prompt(made, _KEYS, id=f"{self._id}-{i}", where=what)

    def _rng(self, i: int) -> random.Random:
        return generator(self._seed, "task", i)


def _check_keys(made: Mapping[str, Any], what: str) -> None:
    known = (_KEYS.input, _KEYS.label, _KEYS.metadata, _KEYS.tools)
    for key in made:
        if key not in known:
            raise DataError(
                f"{what}: unknown key {key!r}{nearest(str(key), known)}; expected {', '.join(known)}"
            )
    if _KEYS.input not in made:
        raise DataError(f"{what}: no {_KEYS.input!r}; it made {', '.join(map(repr, made)) or 'nothing'}")


def _series(name: str, options: Mapping[str, Any], seed: int) -> str:
    """Opens the ids of one series of tasks: another split, other options or another seed are other tasks."""
    split = [options["split"]] if isinstance(options.get("split"), str) else []
    return "-".join([name, *split, _digest([dict(options), seed])[:8]])


def _digest(value: object) -> str:
    encoded = msgspec.json.encode(value, order="deterministic", enc_hook=repr)
    return hashlib.blake2b(encoded, digest_size=16).hexdigest()
