"""The variables of a chat template, which `prompts.chat_template_kwargs` sets."""

import re
from collections.abc import Iterable

import jinja2
import jinja2.meta
import jinja2.sandbox

from strop.errors import ConfigError, first_line
from strop.plugins import nearest

GIVEN = {"messages", "tools", "add_generation_prompt", "raise_exception", "strftime_now"}
"""What a template is always given."""
_MARKER = re.compile(r"\{%[-+]?\s*(end)?generation\s*[-+]?%\}")
"""The tags around what the model says, which transformers adds to the language."""


def refuse_unused(names: Iterable[str], template: str | dict[str, str], *, what: str) -> None:
    """Raise ConfigError for a variable that the template does not use, or that strop gives it itself.

    `template`: one, or several by name, as some tokenizers have them; `what` names it in messages.
    """
    texts = [template] if isinstance(template, str) else list(template.values())
    used = sorted(set().union(*(_variables(text, what=what) for text in texts)) - GIVEN)
    for name in names:
        key = f"prompts.chat_template_kwargs.{name}"
        if name in GIVEN:
            raise ConfigError(f"{key}: strop gives {name!r} to the template itself; remove it")
        if name not in used:
            hint = nearest(name, used) or f"; it uses {', '.join(used) or 'none'}"
            raise ConfigError(f"{key}: {what} uses no such variable{hint}")


def _variables(template: str, *, what: str) -> set[str]:
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(extensions=["jinja2.ext.loopcontrols"])
    try:
        return jinja2.meta.find_undeclared_variables(environment.parse(_MARKER.sub("", template)))
    except jinja2.TemplateSyntaxError as caught:
        raise ConfigError(f"{what} cannot be parsed: {first_line(str(caught))}") from caught
