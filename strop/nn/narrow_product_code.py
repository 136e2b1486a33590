"""What `narrow_product` runs, as code of LLVM: loops over rows of the weight and over panels of tokens, and
tiles of sums that stay in registers.

The tokens are first copied into panels, [inputs, 16] each, the last one [inputs, 8] if so few are left: what
a tile reads lies in one piece, and what is beyond the last token is that token again. Behind the panels there
is space for rows of a bfloat16 weight as float32, and behind these for a tile that is wider than the tokens
that are left.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from strop.nn.machine_code import BITS, FLOAT, REGISTER, Code, integer, registers_of
from strop.nn.narrow_product import PANEL, ROWS, ROWS_OF_ONE
from strop.nn.own_code import WIDTH

NUMBERS = ("num_outputs", "num_inputs", "num_tokens", "weight_row", "x_row", "x_column", "out_row", "adds")
"""The arguments after the addresses of weight, x, out and space. `_row`, `_column`: from one to the next, in
numbers."""

_BFLOAT16 = ir.IntType(16)


def module() -> ir.Module:
    """Of functions `of_float` and `of_bfloat16`, by the type of the weight."""
    made = ir.Module("narrow_product")
    for rows, registers in ((ROWS_OF_ONE, 1), (ROWS, 2), (ROWS, 1), (1, 2), (1, 1)):
        _Tile(made, rows, registers).write()
    _Product(made, "of_float", FLOAT).write()
    _Product(made, "of_bfloat16", _BFLOAT16).write()
    return made


class _Tile(Code):
    """Some rows of a float32 weight with a panel of so many registers of tokens."""

    def __init__(self, made: ir.Module, rows: int, registers: int) -> None:
        super().__init__(made, _tile(rows, registers), 3, ("weight_row", "num_inputs", "out_row", "adds"))
        self._rows, self._registers = rows, registers

    def write(self) -> None:
        code, (weight, panel, out) = self.code, self.addresses
        zeros = registers_of(0.0)
        sums = [[self.variable(zeros) for _ in range(self._registers)] for _ in range(self._rows)]
        starts = self._starts(weight, "weight_row")
        with self.loop(integer(0), self.numbers["num_inputs"]) as i:
            here = self.at(panel, code.mul(i, integer(self._registers * WIDTH)))
            tokens = [self.register(here, place) for place in self._places]
            for start, row in zip(starts, sums, strict=True):
                factor = self.everywhere(self.number(start, i))
                for some, tokens_of_some in zip(row, tokens, strict=True):
                    added = self.of_registers("fma", [factor, tokens_of_some, self.value(some)])
                    code.store(added, some)
        outs = self._starts(out, "out_row")
        with code.if_then(self.is_true(self.numbers["adds"])):
            for start, row in zip(outs, sums, strict=True):
                for place, some in zip(self._places, row, strict=True):
                    code.store(code.fadd(self.register(start, place), self.value(some)), some)
        for start, row in zip(outs, sums, strict=True):
            for place, some in zip(self._places, row, strict=True):
                self.put(self.value(some), start, place)
        code.ret_void()

    @property
    def _places(self) -> list[Any]:
        return [integer(index * WIDTH) for index in range(self._registers)]

    def _starts(self, address: Any, between: str) -> list[Any]:
        return [
            self.at(address, self.code.mul(integer(row), self.numbers[between])) for row in range(self._rows)
        ]


class _Product(Code):
    def __init__(self, made: ir.Module, name: str, weight_type: Any) -> None:
        super().__init__(made, name, 4, NUMBERS)
        self._weight, self._x, self._out, self._space = self.addresses
        self._weight_type = weight_type

    def write(self) -> None:
        code, num_outputs = self.code, self.numbers["num_outputs"]
        self._copy_tokens()
        is_one = code.icmp_signed("<=", self.numbers["num_tokens"], integer(WIDTH))
        rows = code.select(is_one, integer(ROWS_OF_ONE), integer(ROWS))
        whole = code.sub(num_outputs, code.srem(num_outputs, rows))
        with code.if_else(is_one) as (one, more):
            with one, self.loop(integer(0), whole, ROWS_OF_ONE) as row:
                self._multiply(row, ROWS_OF_ONE)
            with more, self.loop(integer(0), whole, ROWS) as row:
                self._multiply(row, ROWS)
        with self.loop(whole, num_outputs) as row:
            self._multiply(row, 1)
        code.ret_void()

    def _copy_tokens(self) -> None:
        code, num_tokens = self.code, self.numbers["num_tokens"]
        last = code.sub(num_tokens, integer(1))
        with self.loop(integer(0), num_tokens, PANEL) as first:
            panel, width = self._panel(first), self._width(first)
            with self.loop(integer(0), self.numbers["num_inputs"]) as i, self.loop(integer(0), width) as j:
                token = code.add(first, j)
                token = code.select(code.icmp_signed("<", token, last), token, last)
                source = code.add(
                    code.mul(i, self.numbers["x_row"]), code.mul(token, self.numbers["x_column"])
                )
                self.put(self.number(self._x, source), panel, code.add(code.mul(i, width), j))

    def _multiply(self, row: Any, rows: int) -> None:
        """Some rows of the weight with all tokens."""
        code = self.code
        weight, between = self._floats(row, rows)
        out = self.at(self._out, code.mul(row, self.numbers["out_row"]))
        with (
            self.loop(integer(0), self.numbers["num_tokens"], PANEL) as first,
            self._whole_or_aside(self.at(out, first), first, rows) as (target, target_row, adds),
        ):
            addresses = [weight, self._panel(first), target]
            arguments = [*addresses, between, self.numbers["num_inputs"], target_row, adds]
            if rows == ROWS_OF_ONE:
                self.call(_tile(rows, 1), arguments)
            else:
                with code.if_else(code.icmp_signed(">", self._left(first), integer(WIDTH))) as (two, one):
                    with two:
                        self.call(_tile(rows, 2), arguments)
                    with one:
                        self.call(_tile(rows, 1), arguments)

    def _floats(self, row: Any, rows: int) -> tuple[Any, Any]:
        """Some rows of the weight, and how far one is from the next."""
        code, weight_row, num_inputs = self.code, self.numbers["weight_row"], self.numbers["num_inputs"]
        source = self.at(self._weight, code.mul(row, weight_row), self._weight_type)
        if self._weight_type is FLOAT:
            return source, weight_row
        wide = self._behind_panels()
        with self.loop(integer(0), integer(rows)) as r, self.loop(integer(0), num_inputs, WIDTH) as i:
            place = self.at(source, code.add(code.mul(r, weight_row), i), _BFLOAT16)
            narrow = code.load(place, typ=ir.VectorType(_BFLOAT16, WIDTH), align=2)
            bits = code.shl(code.zext(narrow, BITS), ir.Constant(BITS, [16] * WIDTH))
            target = self.at(wide, code.add(code.mul(r, num_inputs), i))
            code.store(code.bitcast(bits, REGISTER), target, align=4)
        return wide, num_inputs

    @contextmanager
    def _whole_or_aside(self, out: Any, first_token: Any, rows: int) -> Iterator[tuple[Any, Any, Any]]:
        """Where a tile shall write, how far a row is from the next, and whether it adds: `out`, or a place
        aside if fewer tokens are left than the tile has; so many are then taken over."""
        code, out_row, left = self.code, self.numbers["out_row"], self._left(first_token)
        is_whole = code.icmp_signed(">=", left, self._width(first_token))
        aside = self.at(self._behind_panels(), code.mul(integer(ROWS_OF_ONE), self.numbers["num_inputs"]))
        yield (
            code.select(is_whole, out, aside),
            code.select(is_whole, out_row, integer(PANEL)),
            code.select(is_whole, self.numbers["adds"], integer(0)),
        )
        with (
            code.if_then(code.not_(is_whole)),
            self.loop(integer(0), integer(rows)) as r,
            self.loop(integer(0), left) as j,
        ):
            value = self.number(aside, code.add(code.mul(r, integer(PANEL)), j))
            target = self.at(out, code.add(code.mul(r, out_row), j))
            sums = code.fadd(code.load(target, typ=FLOAT), value)
            code.store(code.select(self.is_true(self.numbers["adds"]), sums, value), target)

    def _panel(self, first_token: Any) -> Any:
        return self.at(self._space, self.code.mul(first_token, self.numbers["num_inputs"]))

    def _behind_panels(self) -> Any:
        tokens = self.code.add(self.numbers["num_tokens"], integer(WIDTH - 1))
        return self._panel(self.code.and_(tokens, integer(-WIDTH)))

    def _width(self, first_token: Any) -> Any:
        is_wide = self.code.icmp_signed(">", self._left(first_token), integer(WIDTH))
        return self.code.select(is_wide, integer(PANEL), integer(WIDTH))

    def _left(self, first_token: Any) -> Any:
        return self.code.sub(self.numbers["num_tokens"], first_token)


def _tile(rows: int, registers: int) -> str:
    return f"tile_{rows}_{registers}"
