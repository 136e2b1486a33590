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
        self._starts = [sum(part.numel() for part in parts[:i]) for i in range(len(parts))]
        whole = torch.cat([part.detach() for part in parts])
        for part, rows in zip(parts, self.split(whole), strict=True):
            part.data = rows

    @property
    def num_rows(self) -> int:
        return sum(self._rows)

    def whole(self) -> Tensor:
        """[rows of all parts, ...], without a gradient; a view of the parts while they are neighbours."""
        first = self.parts[0].detach()
        if not self._are_neighbours():
            return torch.cat([part.detach() for part in self.parts])
        return first.as_strided((self.num_rows, *first.shape[1:]), first.stride())

    def split(self, whole: Tensor) -> tuple[Tensor, ...]:
        """The rows of each part."""
        return whole.split(self._rows)

    def _are_neighbours(self) -> bool:
        first = self.parts[0]
        size, at, memory = first.element_size(), first.data_ptr(), first.untyped_storage().data_ptr()
        return all(
            part.data_ptr() == at + start * size and part.untyped_storage().data_ptr() == memory
            for part, start in zip(self.parts, self._starts, strict=True)
        )
