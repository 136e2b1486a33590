"""`DatasetSource`: a list of prompts as an endless source, shuffled anew in each epoch."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from strop.errors import DataError
from strop.prompts.rows import refuse_reserved
from strop.randomness import generator
from strop.sample import Prompt


class DatasetSource:
    """Goes round `prompts`. The order of an epoch is a function of `seed` and the epoch alone.

    Raises DataError if there are no prompts, or two with one id.
    """

    def __init__(self, prompts: Sequence[Prompt], *, shuffle: bool, seed: int) -> None:
        self._prompts = list(prompts)
        self._shuffle, self._seed = shuffle, seed
        if not self._prompts:
            raise DataError("the data set holds no prompts")
        for prompt in self._prompts:
            refuse_reserved(prompt)
        _refuse_twins(self._prompts)
        self._fingerprint = _fingerprint(self._prompts, shuffle=shuffle, seed=seed)
        self._epoch, self._offset = 0, 0
        self._order = self._order_of(0)

    def shortened(self, length: Callable[[Prompt], int], *, max_tokens: int) -> "DatasetSource":
        """Another source, at its beginning, of those prompts whose `length` is at most `max_tokens`. Raises
        DataError if there are none."""
        lengths = [length(prompt) for prompt in self._prompts]
        kept = [p for p, tokens in zip(self._prompts, lengths, strict=True) if tokens <= max_tokens]
        if not kept:
            raise DataError(
                f"prompts.max_tokens = {max_tokens}: all {len(lengths)} prompts are longer; "
                f"the shortest has {min(lengths)} tokens"
            )
        return DatasetSource(kept, shuffle=self._shuffle, seed=self._seed)

    def only(self, keeps: Callable[[Prompt], bool]) -> "DatasetSource":
        """Another source, at its beginning, of the prompts that `keeps` says yes to. Raises DataError if it
        does to none."""
        return DatasetSource([p for p in self._prompts if keeps(p)], shuffle=self._shuffle, seed=self._seed)

    def next(self, n: int) -> list[Prompt]:
        """The next `n` prompts, always exactly n; the end of an epoch is crossed without a gap."""
        taken: list[Prompt] = []
        while len(taken) < n:
            rows = self._order[self._offset : self._offset + n - len(taken)]
            taken += [self._prompts[row] for row in rows]
            end = self._offset + len(rows)
            if end == len(self._prompts):
                self._epoch, self._offset = self._epoch + 1, 0
                self._order = self._order_of(self._epoch)
            else:
                self._offset = end
        return taken

    def state(self) -> dict[str, Any]:
        """Epoch, how many of its prompts were taken (never all), and a fingerprint of data and order."""
        return {"epoch": self._epoch, "offset": self._offset, "fingerprint": self._fingerprint}

    def restore(self, state: dict[str, Any]) -> None:
        """Go to a position. Raises DataError if it belongs to other prompts or to another order."""
        if state["fingerprint"] != self._fingerprint:
            raise DataError(
                "the saved position belongs to other prompts, or to another prompts.seed or prompts.shuffle; "
                "resume with the data and the order that the run began with"
            )
        self._epoch, self._offset = state["epoch"], state["offset"]
        self._order = self._order_of(self._epoch)

    def __len__(self) -> int:
        """Prompts in one epoch."""
        return len(self._prompts)

    def _order_of(self, epoch: int) -> list[int]:
        """A permutation of the original order, so that no earlier epoch is needed to know it."""
        order = list(range(len(self._prompts)))
        if self._shuffle:
            generator(self._seed, "prompts", epoch).shuffle(order)
        return order


def _refuse_twins(prompts: list[Prompt]) -> None:
    seen: set[str] = set()
    for prompt in prompts:
        if prompt.id in seen:
            raise DataError(f"two prompts have the id {prompt.id!r}; an id names one task")
        seen.add(prompt.id)


def _fingerprint(prompts: list[Prompt], *, shuffle: bool, seed: int) -> str:
    # Labels and metadata are left out: correcting one does not move the position.
    digest = hashlib.blake2b(repr((shuffle, seed if shuffle else None)).encode(), digest_size=16)
    for prompt in prompts:
        digest.update(msgspec.json.encode((prompt.id, prompt.messages), enc_hook=repr))
    return digest.hexdigest()
