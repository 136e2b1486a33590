"""How much memory a run will take, part by part and at each of its moments. Pure; byte counts in and out.

What is freed is not always given back: the C library keeps freed blocks of up to 32 MiB for later ones, of
which few fit. So where the tensors of a pass are that small, what one moment frees is counted in the next.
"""

from dataclasses import dataclass, field
from typing import Any

from strop.config.tree import Config
from strop.forecast.load import Load, Rows
from strop.forecast.shape import Shape
from strop.runtime.memory import GIB

FLOAT = 4
MIB = 2**20
KEPT_BLOCK = 32 * MIB
"""glibc gives larger blocks back when they are freed (M_MMAP_THRESHOLD, at the most that it grows to)."""
WORKING = 80 * MIB
"""What libraries take once they compute: code pages, buffers of their threads; measured on `tiny`."""
CHUNK = 64 * MIB
"""Logits of the trainer at once, see `nn/logprobs.py`."""
PREFILL_TOKENS = 2048
"""Prompt tokens of the engine at once, see `engines/local/decoder.py`."""


@dataclass(frozen=True, slots=True)
class Base:
    """What this process has taken already, measured, in bytes."""

    libraries: int
    """Python, torch and transformers."""
    data: int
    """Tokenizer and prompts."""


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that takes memory."""

    name: str
    size: int
    how: str


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that a run does, and what is in memory meanwhile."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Memory:
    """The forecast."""

    parts: list[Part]
    moments: list[Moment] = field(default_factory=list)

    @property
    def peak(self) -> Moment:
        """When most is taken."""
        return max(self.moments, key=lambda moment: moment.size)

    def as_json(self) -> dict[str, Any]:
        """In bytes, as all here."""
        return {
            "parts": {part.name: part.size for part in self.parts},
            "moments": {moment.name: moment.size for moment in self.moments},
            "peak": self.peak.size,
            "peak_gib": self.peak.size / GIB,
        }


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Of what a run holds, in bytes."""

    held: int
    """All the time: libraries, data, weights, the engine's own, the reference."""
    gradients: int
    gradients_kept: int
    """Of these, in blocks that are not given back when freed."""
    optimizer: int
    activations: int
    head: int
    keeps_freed: bool
    several: bool
    """Whether an update is of several micro-batches, so that gradients are there while one runs."""

    @property
    def passes(self) -> int:
        """Forward and backward, with the gradients that they leave."""
        if self.several or self.keeps_freed:
            return self.activations + self.head + self.gradients
        return max(self.activations, self.gradients) + self.head

    @property
    def first_update(self) -> int:
        """The optimizer's memory is taken after the first pass: partly what the pass has freed."""
        return max(self.passes, self.gradients + self.optimizer)

    def freed(self, *, updates: int) -> int:
        """Still held after so many updates, though nothing is in it."""
        if not self.keeps_freed or updates == 0:
            return 0
        before = self.activations if updates > 1 else max(0, self.activations - self.optimizer)
        return before + self.gradients_kept


def memory_of(config: Config, shape: Shape, load: Load, base: Base, *, updates: int) -> Memory:
    """Of a run of `config` in one process, over `updates` updates in all; `load` says how long things are."""
    parts = _parts(config, shape, load, base)
    size = {part.name: part.size for part in parts}
    sizes = _sizes(shape, load, size)
    rollout = size["KV cache"] + _drawing(shape, load.rollout)
    moments = [Moment("rollout", sizes.held + rollout)]
    for name, rows in load.evals.items():
        cache = rows.tokens * _cached(config, shape) + _drawing(shape, rows)
        trained = sizes.optimizer + sizes.freed(updates=updates) if updates else 0
        moments.append(Moment(f"evaluation of {name}", sizes.held + trained + cache))
    if updates:
        moments.append(Moment("first update", sizes.held + size["KV cache"] + sizes.first_update))
    if updates > 1:
        later = sizes.optimizer + sizes.passes
        moments.append(Moment("later updates", sizes.held + size["KV cache"] + later))
    if updates and shape.critic:
        own = sizes.optimizer + shape.critic * FLOAT + sizes.activations  # its gradients, and no head
        moments.append(Moment("update of the critic", sizes.held + size["KV cache"] + own))
    if updates and shape.adapted:
        merged = shape.adapted * FLOAT  # what is written is the whole model with its adapters merged in
        kept = sizes.optimizer + sizes.freed(updates=updates)
        moments.append(Moment("checkpoint", sizes.held + size["KV cache"] + kept + merged))
    return Memory(parts, moments)


def _parts(config: Config, shape: Shape, load: Load, base: Base) -> list[Part]:
    trained = shape.adapters or shape.weights
    targets, narrow = load.micro_targets, config.train.dtype == "bfloat16"
    rows = max([load.rollout, *load.evals.values()], key=lambda rows: rows.tokens)
    chunk = min(CHUNK, targets * shape.vocabulary * FLOAT)
    head_gradient = 0 if shape.adapters else shape.vocabulary * shape.hidden * FLOAT
    per_token = shape.kept * FLOAT * (0.7 if narrow else 1)
    parts = [
        Part(
            "libraries", base.libraries + WORKING, "Python, torch, transformers (measured), and their buffers"
        ),
        Part("data", base.data, "tokenizer and prompts (measured)"),
        Part("weights", shape.weights * FLOAT, f"{shape.weights / 1e6:,.1f}M × 4 bytes"),
        Part("adapters", shape.adapters * FLOAT, f"{shape.adapters / 1e6:,.2f}M × 4 bytes"),
        Part("gradients", trained * FLOAT, f"{trained / 1e6:,.1f}M × 4 bytes"),
        Part("optimizer", trained * 2 * FLOAT, "two moments of each trained weight"),
        Part("engine weights", *_engine(config, shape)),
        Part("reference", *_reference(config, shape)),
        Part("judge", shape.guests, "weights and KV cache of what the reward asks within the run"),
        Part("teachers", shape.teachers * FLOAT, f"{shape.teachers / 1e6:,.1f}M × 4 bytes"),
        Part(
            "critic",
            3 * shape.critic * FLOAT,
            f"{shape.critic / 1e6:,.1f}M × 12 bytes: two moments beside each",
        ),
        Part(
            "bfloat16 copies",
            (2 * (shape.in_products + shape.vocabulary * shape.hidden)) * narrow,
            "of weights",
        ),
        Part(
            "KV cache",
            load.rollout.tokens * _cached(config, shape),
            _caches(load.rollout),
        ),
        Part(
            "KV cache, eval",
            rows.tokens * _cached(config, shape),
            _caches(rows),
        ),
        Part(
            "activations", int(load.micro_tokens * per_token), f"{load.micro_tokens} tokens of a micro-batch"
        ),
        Part("logits", max(4 * chunk, 3 * chunk + head_gradient), "a chunk, and the gradient of the head"),
    ]
    if not load.evals:
        parts = [part for part in parts if part.name != "KV cache, eval"]
    return [part for part in parts if part.size or part.name in _ALWAYS]


_ALWAYS = ("weights", "gradients", "optimizer", "KV cache", "activations", "logits")


def _engine(config: Config, shape: Shape) -> tuple[int, str]:
    if config.engine.dtype == "bfloat16":
        return shape.weights * 2, "a copy in bfloat16"
    return shape.adapted * FLOAT, "a merged copy of the matrices that have adapters"


def _reference(config: Config, shape: Shape) -> tuple[int, str]:
    coefs = {"kl_loss_coef": config.algo.kl_loss_coef, "kl_coef": config.algo.kl_coef}
    users = [name for name, coef in coefs.items() if coef > 0 and not shape.adapters]
    return shape.weights * FLOAT * bool(users), f"for algo.{', '.join(users)}"


def _cached(config: Config, shape: Shape) -> int:
    """Bytes of a token in the cache."""
    return shape.cached * (2 if config.engine.dtype == "bfloat16" else FLOAT)


def _drawing(shape: Shape, rows: Rows) -> int:
    """What prefill and sampling take for a moment: a layer of the prompts, some copies of the logits."""
    return (
        PREFILL_TOKENS * (3 * shape.widest + 6 * shape.hidden) * FLOAT
        + 6 * rows.rows * shape.vocabulary * FLOAT
    )


def _sizes(shape: Shape, load: Load, size: dict[str, int]) -> _Sizes:
    own = ("libraries", "data", "weights", "adapters", "bfloat16 copies")
    once = (*own, "engine weights", "reference", "judge", "critic", "teachers")
    head = shape.vocabulary * shape.hidden * FLOAT
    return _Sizes(
        held=sum(size.get(name, 0) for name in once),
        gradients=size["gradients"],
        gradients_kept=size["gradients"] - (head if head > KEPT_BLOCK and not shape.adapters else 0),
        optimizer=size["optimizer"],
        activations=size["activations"],
        head=size["logits"],
        keeps_freed=load.micro_tokens * shape.widest * FLOAT <= KEPT_BLOCK,
        several=load.num_micro > 1,
    )


def _caches(rows: Rows) -> str:
    return f"{rows.rows} rows × {rows.capacity} tokens, {rows.prompts} prompts × {rows.prompt_capacity}"
