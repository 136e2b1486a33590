"""Which sampling a sample gets: the run's or a held-out set's, lowered to what its prompt leaves room for."""

from dataclasses import replace

from strop.config.tree import EvalSet, Rollout
from strop.prompts.rows import BUDGET
from strop.sample import Prompt, Sampling


def run_sampling(section: Rollout) -> Sampling:
    """Of training samples."""
    return Sampling(
        max_tokens=section.max_response_tokens,
        temperature=section.temperature,
        stop_token_ids=tuple(section.stop_token_ids),
        top_p=section.top_p,
        top_k=section.top_k,
        min_p=section.min_p,
        stop=tuple(section.stop),
        ignore_eos=section.ignore_eos,
    )


def greedy_sampling(section: Rollout) -> Sampling:
    """Of the reply that training samples are compared with."""
    return replace(run_sampling(section), temperature=0.0, top_p=1.0, top_k=-1, min_p=0.0)


def eval_sampling(section: EvalSet, rollout: Rollout) -> Sampling:
    """Of a held-out set: the run's, where the set does not say otherwise."""
    same = run_sampling(rollout)
    return Sampling(
        max_tokens=section.max_response_tokens or same.max_tokens,
        temperature=section.temperature,
        stop_token_ids=same.stop_token_ids,
        top_p=same.top_p if section.top_p is None else section.top_p,
        top_k=same.top_k if section.top_k is None else section.top_k,
        min_p=same.min_p if section.min_p is None else section.min_p,
        stop=same.stop if section.stop is None else tuple(section.stop),
        ignore_eos=same.ignore_eos,
    )


def lowered(
    sampling: Sampling, prompt: Prompt, *, prompt_tokens: int, max_context_tokens: int | None
) -> Sampling:
    """The same with the budget of one prompt: its own (`metadata.max_response_tokens`), and what
    `rollout.max_context_tokens` leaves beside it. Preflight has seen that at least one token is left."""
    limits = [sampling.max_tokens]
    if BUDGET in prompt.metadata:
        limits.append(prompt.metadata[BUDGET])
    if max_context_tokens is not None:
        limits.append(max_context_tokens - prompt_tokens)
    return replace(sampling, max_tokens=min(limits))
