"""Variables of the environment: `${NAME}/…`, a path that begins with one, for data that lies elsewhere on
each machine; and secrets, which no run file should hold."""

import os
import re
from collections.abc import Mapping

from strop.errors import ConfigError

_OPENING = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}")


def expanded(path: str, environment: Mapping[str, str] = os.environ) -> str:
    """The path with the variable's value in place of its name; a relative value starts from the working
    directory, where a shell completed it, and not from the run file.

    Raises ConfigError, without the path, but with half of the way out, when the variable is unset or empty.
    """
    if not path.startswith("${"):
        return path
    found = _OPENING.match(path)
    if not found:
        raise ConfigError("begins with ${, but not with a variable; write ${DATA}/…")
    value = environment.get(found["name"], "")
    if not value:
        name, problem = found["name"], "is empty" if found["name"] in environment else "is not set"
        raise ConfigError(f"the environment variable {name} {problem}; run `{name}=/path strop …`")
    return os.path.abspath(os.path.expanduser(value)) + path[found.end() :]


def secret(name: str, environment: Mapping[str, str] = os.environ) -> str:
    """The value of a variable that holds a key: to be used, and never written down. Raises ConfigError when
    it is unset, empty, or what no header can hold."""
    value = environment.get(name, "")
    if not value:
        problem = "is empty" if name in environment else "is not set"
        raise ConfigError(f"the environment variable {name} {problem}; run `{name}=… strop …`")
    if not value.isprintable() or value != value.strip():
        raise ConfigError(
            f"the environment variable {name} has a line end or white space around it; remove that"
        )
    return value
