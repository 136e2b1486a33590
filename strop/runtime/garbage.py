"""What a run holds from its beginning to its end is not looked through for garbage."""

import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def set_aside() -> AsyncIterator[None]:
    """While the block runs, whatever exists as it begins is left out of garbage collection: libraries and
    models are millions of objects, and to walk over them takes longer than a step of a small model."""
    gc.collect()  # what is garbage already would stay
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
