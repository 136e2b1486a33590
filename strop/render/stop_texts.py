"""Texts that a tokenizer takes for special tokens, wherever they stand; and stop texts with one in them,
which no reply has: special tokens do not show in the text of a reply."""

from collections.abc import Sequence

from strop.config.toml_text import shown
from strop.errors import ConfigError
from strop.render.base import Renderer
from strop.render.chat import ChatRenderer


def special_ids(renderer: Renderer) -> dict[str, int]:
    """Texts of special tokens → their ids. The bytes of the other renderer are text, all of them."""
    if not isinstance(renderer, ChatRenderer):
        return {}
    added = renderer.tokenizer.added_tokens_decoder
    return {str(token): id for id, token in added.items() if token.special}


def refuse_special(texts: Sequence[str], renderer: Renderer, *, key: str) -> None:
    """Raises ConfigError for the first of `texts` that has a special token in it."""
    ids = special_ids(renderer)
    for text in texts:
        inside = next((special for special in ids if special in text), None)
        if inside is not None:
            raise ConfigError(
                f"{key} has {shown(text)}, but {inside} is a special token, which is no part of a reply's "
                f"text; give its id instead: rollout.stop_token_ids = [{ids[inside]}]"
            )
