"""How one key of the configuration is declared: its default, its bounds and slime's flag for it."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Section(BaseModel):
    """A frozen part of the tree that refuses unknown keys; a field's docstring is its help."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        use_attribute_docstrings=True,
        allow_inf_nan=False,
        protected_namespaces=(),
    )


def key(default: Any = ..., *, slime: str | None = None, path: str | None = None, **bounds: Any) -> Any:
    """Declare a key.

    `slime`: the flat flag that sets it too, e.g. "--lr"; flags that need translation are in
    `config/slime.py`. `path`: when the value names a file, relative to the run file that names it: "file",
    "plugin" (in the form `file.py:name`) or "model" (when it has a slash and is no name of the Hub).
    `bounds`: pydantic's `gt, ge, lt, le`.
    """
    extra: dict[str, Any] = {
        name: value for name, value in (("slime", slime), ("path", path)) if value is not None
    }
    if callable(default) and default is not ...:
        return Field(default_factory=default, json_schema_extra=extra, **bounds)
    return Field(default, json_schema_extra=extra, **bounds)
