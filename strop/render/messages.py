"""Chat messages as the renderers take them: one shape, text only."""

from collections.abc import Sequence

from strop.errors import DataError
from strop.sample import Message, Prompt


def as_messages(prompt: Prompt) -> list[Message]:
    """The prompt as chat messages; text is one message of the user."""
    if isinstance(prompt.messages, str):
        return [{"role": "user", "content": prompt.messages}]
    return flat(prompt.messages)


def flat(messages: Sequence[Message]) -> list[Message]:
    """The messages with lists of text parts joined: most templates take `content` as one text."""
    return [
        {**message, "content": "".join(part["text"] for part in message["content"])}
        if isinstance(message.get("content"), list)
        else message
        for message in messages
    ]


def plain_text(prompt: Prompt) -> str:
    """The text of a prompt that is used as it stands. Raises DataError if it is not plain text."""
    if not isinstance(prompt.messages, str):
        raise DataError(
            f"{prompt.id}: prompts.chat_template = false needs plain text, the prompt has chat messages"
        )
    if prompt.tools:
        raise DataError(f"{prompt.id}: prompts.chat_template = false has no place for the prompt's tools")
    return prompt.messages


def plain_reply(prompt: Prompt, reply: str | Sequence[Message]) -> str:
    """The text of a reply to a prompt that is used as it stands. Raises DataError if it is not plain text."""
    if not isinstance(reply, str):
        raise DataError(
            f"{prompt.id}: prompts.chat_template = false needs plain text, the response has chat messages"
        )
    return reply


def refuse_turns() -> DataError:
    """What is raised when a run without a template needs a second turn."""
    return DataError(
        "prompts.chat_template = false, but the environment answers the model: only a chat template says how "
        'a second turn looks; set prompts.chat_template = true or env.type = "single_turn"'
    )
