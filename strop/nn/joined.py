"""Matrices that one product serves: each stays a parameter of its own, and all are rows of one matrix."""

import torch
from torch import Tensor, nn


class Joined:
    """Makes `parts` neighbours in memory. Nothing is stored twice: each becomes a view, under its own name.

    Whoever gives one of them other memory (a copy of the model, weights lent by another) parts them; `whole`
    is right all the same, and then costs a copy.
    """

    def __init__(self, parts: tuple[nn.Parameter, ...]) -> None:
        self.parts = parts
        self._rows = [len(part) for part in parts]
        self.num_rows = sum(self._rows)
        self._starts = [sum(part.numel() for part in parts[:i]) for i in range(len(parts))]
        whole = torch.cat([part.detach() for part in parts])
        for part, rows in zip(parts, self.split(whole), strict=True):
            part.data = rows

    def whole(self) -> Tensor:
        """[rows of all parts, ...], for use where no gradient is recorded; a view of the parts while they are
        neighbours."""
        first = self.parts[0]
        if len(self.parts) == 1:
            return first
        if not self._are_neighbours():
            return torch.cat(self.parts)
        return first.as_strided((self.num_rows, *first.shape[1:]), first.stride())

    def split(self, whole: Tensor) -> tuple[Tensor, ...]:
        """The rows of each part."""
        return whole.split(self._rows)

    def _are_neighbours(self) -> bool:
        first = self.parts[0]
        size, at, memory = first.element_size(), first.data_ptr(), first.untyped_storage().data_ptr()
        for part, start in zip(self.parts[1:], self._starts[1:], strict=True):
            if part.data_ptr() != at + start * size or part.untyped_storage().data_ptr() != memory:
                return False
        return True
