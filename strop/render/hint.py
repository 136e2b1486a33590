"""A hint before a prompt: what a teacher is shown and the policy is not."""

from dataclasses import replace

from strop.errors import DataError
from strop.render.messages import as_messages
from strop.sample import Prompt


def hinted(prompt: Prompt, key: str, *, has_roles: bool) -> Prompt:
    """The prompt with the text of `metadata[key]` before it: as a system message or the beginning of the one
    that is there; without a chat template (`has_roles` false) as plain text. Raises DataError if there is no
    such text."""
    hint = prompt.metadata.get(key)
    if not isinstance(hint, str) or not hint:
        raise DataError(
            f"{prompt.id}: metadata.{key} = {hint!r}, expected a text: algo.teacher.hint_key says that the "
            "teacher is shown it"
        )
    if not has_roles:
        return replace(prompt, messages=f"{hint}{prompt.messages}")
    first, *rest = messages = as_messages(prompt)
    if first["role"] == "system":
        messages = [{**first, "content": f"{hint}\n\n{first['content']}"}, *rest]
    else:
        messages = [{"role": "system", "content": hint}, *messages]
    return replace(prompt, messages=tuple(messages))
