"""Many small cases in one test: the one that fails is named."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def case(*named: object) -> Iterator[None]:
    """What fails inside, a `pytest.raises` that nothing was raised for included, ends with `named`."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"in the case {', '.join(f'{each!r:.200}' for each in named)}")
        raise
