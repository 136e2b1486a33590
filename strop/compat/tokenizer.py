"""The tokenizer that functions written against slime ask for: transformers', or one for models over bytes."""

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from strop.errors import DataError
from strop.render.bytes import END_OF_TURN, ROLES, TOKENIZER_CLASS, ByteRenderer
from strop.render.open import check_tokenizer
from strop.sample import Message, Prompt

_SPECIAL = {**{f"<|{role}|>": id for role, id in ROLES.items()}, "<|end|>": END_OF_TURN}
_NAMES = {id: text for text, id in _SPECIAL.items()}
_PIECES = re.compile("(" + "|".join(map(re.escape, _SPECIAL)) + ")")


@cache
def load_tokenizer(name_or_path: str, **_: Any) -> Any:
    """The tokenizer of a model directory, as `args.hf_checkpoint` names it. Code that a checkpoint brings
    along is never run, whatever `trust_remote_code` says."""
    if check_tokenizer(Path(name_or_path)) == TOKENIZER_CLASS:
        return ByteTokenizer()
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(name_or_path)


class ByteTokenizer:
    """Text as its UTF-8 bytes, with the five special tokens of `render/bytes.py` written `<|user|>`."""

    eos_token, eos_token_id = "<|end|>", END_OF_TURN
    pad_token, pad_token_id = None, None
    bos_token, bos_token_id = None, None

    def __call__(self, text: str, **_: Any) -> dict[str, list[int]]:
        """With `add_special_tokens` or without: there are none to add."""
        ids = self.encode(text)
        return {"input_ids": ids, "attention_mask": [1] * len(ids)}

    def encode(self, text: str, **_: Any) -> list[int]:
        ids: list[int] = []
        for piece in _PIECES.split(text):
            ids += [_SPECIAL[piece]] if piece in _SPECIAL else piece.encode()
        return ids

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = False, **_: Any) -> str:
        """Bytes that are not UTF-8 as U+FFFD."""
        parts, run = [], bytearray()
        for id in [*(int(i) for i in ids), END_OF_TURN]:
            if id < END_OF_TURN:
                run.append(id)
                continue
            parts += [run.decode(errors="replace"), "" if skip_special_tokens else _NAMES.get(id, "")]
            run = bytearray()
        return "".join(parts[:-1])

    def apply_chat_template(
        self,
        conversation: Sequence[Message],
        tools: Sequence[Any] | None = None,
        *,
        tokenize: bool = True,
        add_generation_prompt: bool = False,
        **_: Any,
    ) -> Any:
        """Ids, or text with the special tokens written out. DataError for tools and unknown roles."""
        prompt = Prompt(id="messages", messages=tuple(conversation), tools=tuple(tools or ()))
        if not conversation:
            raise DataError("messages: a conversation needs at least one message")
        ids = ByteRenderer().prompt(prompt)
        ids = ids if add_generation_prompt else ids[:-1]
        return ids if tokenize else self.decode(ids)
