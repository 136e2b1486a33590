"""slime's module names: `strop.compat.slime.utils.types` and so on; see `strop.compat.names`."""

from strop.compat.names import install

install()
