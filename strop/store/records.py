"""Prompt, Tokens, Sample and Group as JSON, and back, without loss.

A NaN behavior (a token that the policy did not sample) is null. Every record carries the format it was
written in, and a record of another format is refused. Other floats must be finite: `encode_exact` says so.
"""

import base64
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from strop.errors import DataError
from strop.sample import FORMAT, Group, Prompt, Sample, Sampling, SpecInfo, Status, Tokens

Json = dict[str, Any]


def prompt_to_json(prompt: Prompt) -> Json:
    """For `prompt_from_json`. Metadata, label and tools are taken as they are: they came from JSON."""
    return {
        "format": FORMAT,
        "id": prompt.id,
        "messages": prompt.messages if isinstance(prompt.messages, str) else list(prompt.messages),
        "label": prompt.label,
        "metadata": prompt.metadata,
        "tools": list(prompt.tools),
        "media": list(prompt.media),
        "environment": prompt.environment,
        "reward": prompt.reward,
        "sampling": sampling_to_json(prompt.sampling),
    }


def prompt_from_json(data: Json) -> Prompt:
    """What `prompt_to_json` wrote; DataError for another format."""
    fields = _fields(data, "prompt")
    messages = fields["messages"]
    return Prompt(
        **{
            **fields,
            "messages": messages if isinstance(messages, str) else tuple(messages),
            "tools": tuple(fields["tools"]),
            "media": tuple(fields["media"]),
            "sampling": sampling_from_json(fields["sampling"]),
        }
    )


def tokens_to_json(tokens: Tokens) -> Json:
    """Five lists; float32 log-probs are written as the double that reads back as the same float32."""
    behavior = [logp if sampled else None for logp, sampled in _pairs(tokens.behavior, tokens.sampled)]
    return {
        "ids": tokens.ids.tolist(),
        "sampled": tokens.sampled.tolist(),
        "mask": tokens.mask.tolist(),
        "behavior": behavior,
        "versions": tokens.versions.tolist(),
    }


def tokens_from_json(data: Json) -> Tokens:
    """What `tokens_to_json` wrote; raises MalformedTokens if the lists cannot be true together."""
    behavior = [np.nan if logp is None else logp for logp in data["behavior"]]
    return Tokens(
        np.asarray(data["ids"], np.int32),
        np.asarray(data["sampled"], bool),
        np.asarray(data["mask"], bool),
        np.asarray(behavior, np.float32),
        np.asarray(data["versions"], np.int32),
    )


def sample_to_json(sample: Sample) -> Json:
    """For `sample_from_json`."""
    return {
        "format": FORMAT,
        "index": sample.index,
        "group_id": sample.group_id,
        "prompt_id": sample.prompt_id,
        "trajectory_id": sample.trajectory_id,
        "policy": sample.policy,
        "role": sample.role,
        "prompt": sample.prompt,
        "label": sample.label,
        "sequence": tokens_to_json(sample.sequence),
        "prompt_length": sample.prompt_length,
        "response": sample.response,
        "status": sample.status.value,
        "error": sample.error,
        "reward": sample.reward,
        "scores": sample.scores,
        "remove_sample": sample.remove_sample,
        "metadata": sample.metadata,
        "timing": sample.timing,
        "sampling": sampling_to_json(sample.sampling),
        "extras": {name: _array_to_json(array) for name, array in sample.extras.items()},
        "media": list(sample.media),
        "spec_info": asdict(sample.spec_info),
    }


def sample_from_json(data: Json) -> Sample:
    """What `sample_to_json` wrote; DataError for another format."""
    fields = _fields(data, "sample")
    return Sample(
        **{
            **fields,
            "sequence": tokens_from_json(fields["sequence"]),
            "status": Status(fields["status"]),
            "sampling": sampling_from_json(fields["sampling"]),
            "extras": {name: _array_from_json(array) for name, array in fields["extras"].items()},
            "media": tuple(fields["media"]),
            "spec_info": SpecInfo(**fields["spec_info"]),
        }
    )


def group_to_json(group: Group) -> Json:
    """For `group_from_json`."""
    return {
        "format": FORMAT,
        "id": group.id,
        "prompt": prompt_to_json(group.prompt),
        "samples": [sample_to_json(sample) for sample in group.samples],
        "tries": group.tries,
        "greedy": [sample_to_json(sample) for sample in group.greedy],
    }


def group_from_json(data: Json) -> Group:
    """What `group_to_json` wrote; DataError for another format."""
    fields = _fields(data, "group")
    return Group(
        **{
            **fields,
            "prompt": prompt_from_json(fields["prompt"]),
            "samples": [sample_from_json(sample) for sample in fields["samples"]],
            "greedy": [sample_from_json(sample) for sample in fields["greedy"]],
        }
    )


def sampling_to_json(sampling: Sampling | None) -> Json | None:
    """For `sampling_from_json`."""
    return None if sampling is None else asdict(sampling)


def sampling_from_json(data: Json | None) -> Sampling | None:
    """What `sampling_to_json` wrote."""
    if data is None:
        return None
    return Sampling(**{**data, "stop_token_ids": tuple(data["stop_token_ids"]), "stop": tuple(data["stop"])})


def check_format(found: object, what: str) -> None:
    """DataError unless `found` is the format of this strop."""
    if found != FORMAT:
        raise DataError(
            f"{what}: format {found} is not known, expected {FORMAT}; read it with the strop that wrote it"
        )


def _fields(data: Json, what: str) -> Json:
    check_format(data.get("format"), what)
    return {name: value for name, value in data.items() if name != "format"}


def _pairs(behavior: NDArray[np.float32], sampled: NDArray[np.bool_]) -> list[tuple[float, bool]]:
    return list(zip(behavior.tolist(), sampled.tolist(), strict=True))


def _array_to_json(array: NDArray[Any]) -> Json:
    data = base64.b64encode(array.tobytes()).decode()
    return {"dtype": array.dtype.str, "shape": list(array.shape), "data": data}


def _array_from_json(data: Json) -> NDArray[Any]:
    flat = np.frombuffer(base64.b64decode(data["data"]), np.dtype(data["dtype"]))
    return flat.reshape(data["shape"]).copy()
