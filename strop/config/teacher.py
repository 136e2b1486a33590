"""The keys of on-policy distillation: who teaches, what is compared, and what the teacher is told."""

from typing import Annotated, Literal

from pydantic import Field

from strop.config.keys import Section, key

Text = Annotated[str, Field(min_length=1)]

POLICY = "policy"
"""As the name of a teacher: the policy's own weights as they are."""


class Teacher(Section):
    """A model that the policy is drawn to on the tokens that the policy itself samples, whatever `advantage`
    makes of rewards. It scores the same ids, at the temperature and within the sets they were drawn from."""

    model: Text | None = key(None, slime="--opd-teacher-load", path="model")
    """A model, as in `model`, with the same tokenizer; a run directory: the model of its last checkpoint; or
    `policy`: the policy's own weights as they are, which the hint of `hint_key` makes a teacher."""
    train_first: Text | None = key(None, path="file")
    """A run file: where `model` is not there yet, `strop train` first makes it, as the directory of this
    run."""
    coef: float = key(1.0, slime="--opd-kl-coef", gt=0)
    """Weight of KL(policy ‖ teacher): in the advantage with `sampled`, else in the loss."""
    form: Literal["sampled", "top_k", "full"] = key("sampled")
    """`sampled`: policy − teacher log-prob of a sampled token is taken from the token's advantage; `full`:
    the divergence over the whole vocabulary is part of the loss, without the noise of the draw; `top_k`: the
    same over the policy's likeliest ids, each, and all others together."""
    top_k: int = key(20, ge=1)
    """Of `top_k`: how many ids."""
    beta: float = key(1.0, ge=0, le=1)
    """Of `full` and `top_k`: 1 is KL(policy ‖ teacher), 0 KL(teacher ‖ policy), between them the generalised
    Jensen–Shannon divergence of GKD (arXiv:2306.13649)."""
    hint_key: Text | None = key(None)
    """Name of the metadata that holds a text which only the teacher is shown, before the prompt: as a system
    message, or without a chat template as it is."""


class OneTeacher(Section):
    """One of several teachers."""

    model: Text = key(path="model")
    """As `algo.teacher.model`."""
    weight: float = key(1.0, gt=0)
    """Its share in what is learnt from a prompt that several teach."""
    sources: list[Text] = key(list)
    """The prompts that it teaches, by their `metadata.source_name`, which parts of a mixture give theirs;
    empty: all."""
