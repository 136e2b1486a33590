"""The tokenizer of a model directory, without transformers where tokenizer.json is all there is to it.

transformers builds some tokenizers anew, adds tokens to others and mends a few; which, it decides by
keys and files of the directory. Such directories are left to it.
"""

import json
from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
import msgspec
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from strop.sample import Message

if TYPE_CHECKING:
    from tokenizers import AddedToken, Tokenizer

_CLASSES = ("TokenizersBackend", "PreTrainedTokenizerFast")
_NAMED = ("bos_token", "eos_token", "unk_token", "pad_token")
_KEYS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(_NAMED, (str, type(None))),
    **dict.fromkeys(("tokenizer_class", "chat_template"), (str,)),
    **dict.fromkeys(("is_local", "local_files_only", "clean_up_tokenization_spaces"), (bool,)),
    "backend": (str,),
    "model_max_length": (int, float),
    "model_input_names": (list,),
}
"""Keys of tokenizer_config.json that change nothing beside what is done here, and what they may hold."""
_OTHER_FILES = ("special_tokens_map.json", "added_tokens.json", "additional_chat_templates", "vocab.json")
_MOST_TOKENS = 100_000
"""From here on transformers looks for vocabularies that were published with a fault, and mends them."""


class PlainTokenizer:
    """What strop asks of a tokenizer, by transformers' names and with its results."""

    def __init__(self, tokenizer: "Tokenizer", named: dict[str, str], template: str | None) -> None:
        self._tokenizer, self._named = tokenizer, named
        self.chat_template = template
        self.bos_token = named.get("bos_token")
        self.bos_token_id, self.eos_token_id, self.pad_token_id = (
            self._id(named.get(name)) for name in ("bos_token", "eos_token", "pad_token")
        )

    def __call__(self, text: str, *, add_special_tokens: bool = True) -> dict[str, list[int]]:
        return {"input_ids": self._tokenizer.encode(text, add_special_tokens=add_special_tokens).ids}

    def decode(
        self,
        ids: Sequence[int],
        *,
        skip_special_tokens: bool = False,
        clean_up_tokenization_spaces: bool = False,
    ) -> str:
        """The text, never cleaned up."""
        assert not clean_up_tokenization_spaces
        text: str = self._tokenizer.decode(ids, skip_special_tokens=skip_special_tokens)
        return text

    def convert_ids_to_tokens(self, id: int) -> str | None:
        """As it stands in the vocabulary."""
        token: str | None = self._tokenizer.id_to_token(id)
        return token

    @property
    def added_tokens_decoder(self) -> "dict[int, AddedToken]":
        """The tokens that stand beside the vocabulary, by id."""
        added: dict[int, AddedToken] = self._tokenizer.get_added_tokens_decoder()
        return added

    def apply_chat_template(
        self,
        messages: list[Message],
        *,
        tools: list[dict[str, Any]] | None,
        tokenize: bool,
        add_generation_prompt: bool,
        **variables: Any,
    ) -> str:
        """The text that the template makes of the messages."""
        assert not tokenize
        given = {"tools": tools, "documents": None, "add_generation_prompt": add_generation_prompt}
        return self._template.render(messages=messages, **{**self._named, **variables}, **given)

    @property
    def special_tokens_map(self) -> dict[str, str]:
        """Names and texts of the tokens that templates may write."""
        return self._named

    @cached_property
    def _template(self) -> jinja2.Template:
        return compiled(self.chat_template or "")

    def _id(self, token: str | None) -> int | None:
        id: int | None = None if token is None else self._tokenizer.token_to_id(token)
        return id


def compiled(template: str) -> jinja2.Template:
    """With the settings, filters and functions of transformers: templates are written for them."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = _strftime_now
    return environment.from_string(template)


def plain_tokenizer(directory: Path) -> PlainTokenizer | None:
    """None where transformers would make more of it than tokenizer.json says, or refuse it."""
    named_by_model = _model_type(directory) not in (None, "llama")
    if named_by_model or any((directory / file).exists() for file in _OTHER_FILES):
        return None
    config = _object(directory / "tokenizer_config.json")
    if config is None or config.get("tokenizer_class") not in _CLASSES or not _is_plain(config):
        return None
    named = {name: config[name] for name in _NAMED if config.get(name)}
    tokenizer = _read(directory / "tokenizer.json")
    if tokenizer is None or not _is_complete(tokenizer, named):
        return None
    jinja = directory / "chat_template.jinja"
    template = jinja.read_text("utf-8") if jinja.is_file() else config.get("chat_template")
    return PlainTokenizer(tokenizer, named, template)


def _model_type(directory: Path) -> Any:
    config = _object(directory / "config.json")
    return None if config is None else config.get("model_type")


def _object(file: Path) -> dict[str, Any] | None:
    """None as well for a file that is not there or holds no object: transformers says what is wrong."""
    if not file.is_file():
        return None
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
    except msgspec.DecodeError:
        return None


def _is_plain(config: dict[str, Any]) -> bool:
    return all(key in _KEYS and type(value) in _KEYS[key] for key, value in config.items())


def _read(file: Path) -> "Tokenizer | None":
    from tokenizers import Tokenizer  # on use: models over bytes need none of it

    try:
        return Tokenizer.from_buffer(file.read_bytes())
    except (OSError, ValueError):
        return None


def _is_complete(tokenizer: "Tokenizer", named: dict[str, str]) -> bool:
    """Whether there is nothing to add, to cut or to mend."""
    special = {token.content for token in tokenizer.get_added_tokens_decoder().values() if token.special}
    return (
        special.issuperset(named.values())
        and tokenizer.padding is None
        and tokenizer.truncation is None
        and tokenizer.post_processor is not None
        and tokenizer.get_vocab_size() <= _MOST_TOKENS
    )


class _Generation(Extension):
    """`{% generation %}`, around what the model says: shown as it is."""

    tags = {"generation"}  # noqa: RUF012 - as jinja declares it

    def parse(self, parser: jinja2.parser.Parser) -> jinja2.nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_said"), [], [], body).set_lineno(line)

    def _said(self, caller: Any) -> str:
        text: str = caller()
        return text


def _to_json(value: Any, **how: Any) -> str:
    # jinja's own writes for HTML.
    return json.dumps(value, **{"ensure_ascii": False, **how})


def _refuse(message: str) -> None:
    raise jinja2.TemplateError(message)


def _strftime_now(form: str) -> str:
    return datetime.now().strftime(form)  # noqa: DTZ005 - the reader's day
