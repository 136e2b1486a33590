"""What `row_attention` runs, as code of LLVM: for every row and key head the scores of all keys, their
softmax, and the values that they weigh; for up to six query heads at once.

Keys lie by dimension, sixteen tokens or more side by side, so that registers hold keys; values lie by token,
so that registers hold dimensions. Both are read once for the query heads that share them.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from llvmlite import ir

from strop.nn.machine_code import (
    BITS,
    FLOAT,
    INT,
    REGISTER,
    Code,
    integer,
    registers_of,
)
from strop.nn.own_code import WIDTH
from strop.nn.row_attention import BLOCK, MOST_HEADS

ADDRESSES = (
    "query",
    "shared_keys",
    "shared_values",
    "own_keys",
    "own_values",
    "rows",
    "blocks",
    "space",
    "out",
)
NUMBERS = (
    "num_rows",
    "num_key_heads",
    "shared_slot",
    "shared_head",
    "shared_dimension",
    "space_head",
)
"""The arguments; `shared_`: how far one slot, head or dimension of the prefixes' keys is from the next."""
SLOT, PREFIX, OWN, FIRST, ROW = range(5)
"""What `rows` says of each: its slot, the tokens of its prefix and its own, the first of its `blocks`, and
its place among queries."""
_FIELDS = 5


def module(query_heads: int, head_dim: int) -> ir.Module:
    """Of `attend`, for so many query heads of a key head."""
    made = ir.Module("row_attention")
    _Attend(made, query_heads, head_dim).write()
    return made


class _Attend(Code):
    def __init__(self, made: ir.Module, query_heads: int, head_dim: int) -> None:
        super().__init__(made, "attend", len(ADDRESSES), NUMBERS)
        self._of = dict(zip(ADDRESSES, self.addresses, strict=True))
        self._heads, self._dim = query_heads, head_dim

    def write(self) -> None:
        num_parts = -(-self._heads // MOST_HEADS)
        size = -(-self._heads // num_parts)
        with self.loop(integer(0), self.numbers["num_rows"]) as index:
            row = _Row(self, index)
            with self.loop(integer(0), self.numbers["num_key_heads"]) as key_head:
                for first in range(0, self._heads, size):
                    self._attend(row, key_head, first, min(size, self._heads - first))
        self.code.ret_void()

    def _attend(self, row: "_Row", key_head: Any, first: int, num: int) -> None:
        code, space, head = self.code, self._of["space"], self.numbers["space_head"]
        query_head = code.add(code.mul(key_head, integer(self._heads)), integer(first))
        heads = code.mul(self.numbers["num_key_heads"], integer(self._heads))
        place = code.mul(code.add(code.mul(row.place, heads), query_head), integer(self._dim))
        query = self.at(self._of["query"], place)
        self._score(row, key_head, query, num)
        sums = [self._softmax(self.at(space, code.mul(integer(i), head)), row) for i in range(num)]
        self._weigh(row, key_head, self.at(self._of["out"], place), sums)

    def _score(self, row: "_Row", key_head: Any, query: Any, num: int) -> None:
        code, space = self.code, self._of["space"]
        dimension = self.numbers["shared_dimension"]
        keys = self.at(self._of["shared_keys"], self._shared(row, key_head))
        with self.loop(integer(0), row.prefix, BLOCK) as token:
            self._scores(query, self.at(keys, token), dimension, self.at(space, token), num)
        with self.loop(integer(0), row.own, BLOCK) as token:
            keys = self.at(self._of["own_keys"], self._own(row, key_head, token))
            behind = self.at(space, code.add(row.padded, token))
            self._scores(query, keys, integer(BLOCK), behind, num)
        for i in range(num):
            scores = self.at(space, code.mul(integer(i), self.numbers["space_head"]))
            for start, stop in ((row.prefix, row.padded), (row.end, row.padded_end)):
                with self.loop(start, stop) as token:
                    self.put(ir.Constant(FLOAT, float("-inf")), scores, token)

    def _scores(self, query: Any, keys: Any, dimension: Any, out: Any, num: int) -> None:
        """Of a block of keys."""
        code, zeros = self.code, registers_of(0.0)
        sums = [[self.variable(zeros), self.variable(zeros)] for _ in range(num)]
        with self.loop(integer(0), integer(self._dim)) as d:
            here = self.at(keys, code.mul(d, dimension))
            two = [self.register(here, integer(0)), self.register(here, integer(WIDTH))]
            for i, pair in enumerate(sums):
                factor = self.everywhere(self.number(query, code.add(d, integer(i * self._dim))))
                for some, some_keys in zip(pair, two, strict=True):
                    code.store(self.of_registers("fma", [factor, some_keys, self.value(some)]), some)
        for i, pair in enumerate(sums):
            row = self.at(out, code.mul(integer(i), self.numbers["space_head"]))
            for number, some in enumerate(pair):
                self.put(self.value(some), row, integer(number * WIDTH))

    def _softmax(self, scores: Any, row: "_Row") -> Any:
        """Scores become exp(score − the largest); returns their sum, everywhere."""
        code, larger = self.code, partial(_larger, self.code)
        top = self.variable(registers_of(float("-inf")))
        with self.loop(integer(0), row.padded_end, WIDTH) as token:
            some, before = self.register(scores, token), self.value(top)
            code.store(larger(before, some), top)
        largest = self._of_all(self.value(top), larger)
        total = self.variable(registers_of(0.0))
        with self.loop(integer(0), row.padded_end, WIDTH) as token:
            some = self._exp(code.fsub(self.register(scores, token), largest))
            self.put(some, scores, token)
            code.store(code.fadd(self.value(total), some), total)
        return self._of_all(self.value(total), code.fadd)

    def _of_all(self, register: Any, operation: Callable[[Any, Any], Any]) -> Any:
        """The numbers of a register made one, which is everywhere."""
        numbers = [self.code.extract_element(register, integer(i)) for i in range(WIDTH)]
        while len(numbers) > 1:
            numbers = [operation(a, b) for a, b in zip(numbers[::2], numbers[1::2], strict=True)]
        return self.everywhere(numbers[0])

    def _exp(self, x: Any) -> Any:
        """Of numbers that are not above 0: 2ⁿ times a polynomial of the rest (Cephes, `expf`); NaN stays."""
        code = self.code
        least = registers_of(-87.0)
        x = code.select(code.fcmp_ordered("<", x, least), least, x)
        n = self.of_registers("rint", [code.fmul(x, registers_of(1.44269504088896341))])
        for part in (0.693359375, -2.12194440e-4):  # of the logarithm of 2
            x = self.of_registers("fma", [n, registers_of(-part), x])
        y = registers_of(_EXP[0])
        for factor in _EXP[1:]:
            y = self.of_registers("fma", [y, x, registers_of(factor)])
        y = self.of_registers("fma", [y, code.fmul(x, x), x])
        y = code.fadd(y, registers_of(1.0))
        exponent = code.add(code.fptosi(n, BITS), ir.Constant(BITS, [127] * WIDTH))
        power = code.bitcast(code.shl(exponent, ir.Constant(BITS, [23] * WIDTH)), REGISTER)
        return code.fmul(y, power)

    def _weigh(self, row: "_Row", key_head: Any, out: Any, sums: list[Any]) -> None:
        """Write the means of the values to `out`."""
        code, space = self.code, self._of["space"]
        at_once = next(
            n for n in (8, 4, 2, 1) if n * len(sums) <= 2 * MOST_HEADS and self._dim % (n * WIDTH) == 0
        )
        shared = self.at(self._of["shared_values"], self._shared(row, key_head))
        with self.loop(integer(0), integer(self._dim), at_once * WIDTH) as d:
            means = [[self.variable(registers_of(0.0)) for _ in range(at_once)] for _ in sums]
            self._add(means, self.at(shared, d), space, row.prefix)
            with self.loop(integer(0), row.own, BLOCK) as token:
                left = code.sub(row.own, token)
                num = code.select(code.icmp_signed("<", left, integer(BLOCK)), left, integer(BLOCK))
                own = self.at(self._of["own_values"], code.add(self._own(row, key_head, token), d))
                self._add(means, own, self.at(space, code.add(row.padded, token)), num)
            for i, (parts, total) in enumerate(zip(means, sums, strict=True)):
                here = self.at(out, code.add(d, integer(i * self._dim)))
                for number, some in enumerate(parts):
                    self.put(code.fdiv(self.value(some), total), here, integer(number * WIDTH))

    def _add(self, means: list[list[Any]], values: Any, weights: Any, num_tokens: Any) -> None:
        code = self.code
        with self.loop(integer(0), num_tokens) as token:
            here = self.at(values, code.mul(token, integer(self._dim)))
            some_values = [self.register(here, integer(i * WIDTH)) for i in range(len(means[0]))]
            for i, parts in enumerate(means):
                of_head = self.at(weights, code.mul(integer(i), self.numbers["space_head"]))
                weight = self.everywhere(self.number(of_head, token))
                for some, value in zip(parts, some_values, strict=True):
                    code.store(self.of_registers("fma", [weight, value, self.value(some)]), some)

    def _shared(self, row: "_Row", key_head: Any) -> Any:
        code = self.code
        slot = code.mul(row.slot, self.numbers["shared_slot"])
        return code.add(slot, code.mul(key_head, self.numbers["shared_head"]))

    def _own(self, row: "_Row", key_head: Any, token: Any) -> Any:
        """The place of the block of a token."""
        code = self.code
        index = code.add(row.first, code.sdiv(token, integer(BLOCK)))
        block = code.load(self.at(self._of["blocks"], index, INT), typ=INT)
        head = code.add(code.mul(block, self.numbers["num_key_heads"]), key_head)
        return code.mul(head, integer(BLOCK * self._dim))

    def field(self, index: Any, field: int) -> Any:
        code = self.code
        place = code.add(code.mul(index, integer(_FIELDS)), integer(field))
        return code.load(self.at(self._of["rows"], place, INT), typ=INT)


class _Row:
    """What the code knows of a row; scores of its own tokens begin at `padded`."""

    def __init__(self, of: _Attend, index: Any) -> None:
        code = of.code
        self.slot, self.prefix, self.own = (of.field(index, f) for f in (SLOT, PREFIX, OWN))
        self.first, self.place = of.field(index, FIRST), of.field(index, ROW)
        self.padded = _whole_blocks(code, self.prefix)
        self.end = code.add(self.padded, self.own)
        self.padded_end = _whole_blocks(code, self.end)


def _larger(code: ir.IRBuilder, a: Any, b: Any) -> Any:
    return code.select(code.fcmp_ordered(">", a, b), a, b)


def _whole_blocks(code: ir.IRBuilder, tokens: Any) -> Any:
    return code.and_(code.add(tokens, integer(BLOCK - 1)), integer(-BLOCK))


_EXP = (
    1.9875691500e-4,
    1.3981999507e-3,
    8.3334519073e-3,
    4.1665795894e-2,
    1.6666665459e-1,
    5.0000001201e-1,
)
