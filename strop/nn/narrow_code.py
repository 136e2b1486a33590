"""What `narrow_product` runs, as code of LLVM: loops over rows of the weight and over panels of tokens, and
tiles of sums that stay in registers.

The tokens are first copied into panels, [inputs, 16] each, the last one [inputs, 8] if so few are left: what
a tile reads lies in one piece, and what is beyond the last token is that token again. Behind the panels there
is space for rows of a bfloat16 weight as float32, and behind these for a tile that is wider than the tokens
that are left.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

from llvmlite import ir

WIDTH = 8
"""Numbers of a register"""
ROWS, ROWS_OF_ONE = 6, 12
"""Of the weight that are multiplied together with two registers of tokens, and with one: these sums, and what
they are made of, fill the sixteen registers of AVX2."""
PANEL = 2 * WIDTH
"""Tokens"""

NUMBERS = ("num_outputs", "num_inputs", "num_tokens", "weight_row", "x_row", "x_column", "out_row", "adds")
"""The arguments after the addresses of weight, x, out and space. `_row`, `_column`: from one to the next, in
numbers."""

_INT, _FLOAT, _BFLOAT16 = ir.IntType(64), ir.FloatType(), ir.IntType(16)
_REGISTER = ir.VectorType(_FLOAT, WIDTH)
_BITS = ir.VectorType(ir.IntType(32), WIDTH)
_ADDRESS = ir.PointerType()


def module() -> ir.Module:
    """Of functions `of_float` and `of_bfloat16`, by the type of the weight."""
    made = ir.Module("narrow_product")
    ir.Function(made, ir.FunctionType(_REGISTER, [_REGISTER] * 3), _MULTIPLY_ADD)
    for rows, registers in ((ROWS_OF_ONE, 1), (ROWS, 2), (ROWS, 1), (1, 2), (1, 1)):
        _Tile(made, rows, registers).write()
    _Product(made, "of_float", _FLOAT).write()
    _Product(made, "of_bfloat16", _BFLOAT16).write()
    return made


_MULTIPLY_ADD = f"llvm.fma.v{WIDTH}f32"


class _Code:
    """Of a function of `num_addresses` addresses and then `numbers`."""

    def __init__(self, made: ir.Module, name: str, num_addresses: int, numbers: Sequence[str]) -> None:
        form = ir.FunctionType(ir.VoidType(), [_ADDRESS] * num_addresses + [_INT] * len(numbers))
        function = ir.Function(made, form, name)
        self.addresses = function.args[:num_addresses]
        for address in self.addresses:
            address.add_attribute("noalias")
        self.numbers = dict(zip(numbers, function.args[num_addresses:], strict=True))
        entry, start = function.append_basic_block(), function.append_basic_block()
        self.code = ir.IRBuilder(entry)
        self.code.branch(start)
        self.code.position_at_end(start)

    def function(self, name: str) -> Any:
        return self.code.module.get_global(name)

    def at(self, address: Any, index: Any, kind: Any = _FLOAT) -> Any:
        return self.code.gep(address, [index], inbounds=True, source_etype=kind)

    def number(self, address: Any, index: Any) -> Any:
        return self.code.load(self.at(address, index), typ=_FLOAT)

    def register(self, address: Any, index: int) -> Any:
        return self.code.load(self.at(address, _int(index * WIDTH)), typ=_REGISTER, align=4)

    def variable(self, kind: Any) -> Any:
        with self.code.goto_entry_block():
            return self.code.alloca(kind)

    @contextmanager
    def loop(self, start: Any, stop: Any, step: int = 1) -> Iterator[Any]:
        """What is written inside runs for start, start + step, …, while that is less than `stop`."""
        code, place = self.code, self.variable(_INT)
        code.store(start, place)
        head, body, end = (code.append_basic_block() for _ in range(3))
        code.branch(head)
        code.position_at_end(head)
        index = code.load(place, typ=_INT)
        code.cbranch(code.icmp_signed("<", index, stop), body, end)
        code.position_at_end(body)
        yield index
        code.store(code.add(index, _int(step)), place)
        code.branch(head)
        code.position_at_end(end)


class _Tile(_Code):
    """Some rows of a float32 weight with a panel of so many registers of tokens."""

    def __init__(self, made: ir.Module, rows: int, registers: int) -> None:
        super().__init__(made, _tile(rows, registers), 3, ("weight_row", "num_inputs", "out_row", "adds"))
        self._rows, self._registers = rows, registers

    def write(self) -> None:
        code, (weight, panel, out) = self.code, self.addresses
        sums = [[self.variable(_REGISTER) for _ in range(self._registers)] for _ in range(self._rows)]
        for place in chain.from_iterable(sums):
            code.store(ir.Constant(_REGISTER, [0.0] * WIDTH), place)
        starts = self._starts(weight, "weight_row")
        with self.loop(_int(0), self.numbers["num_inputs"]) as i:
            here = self.at(panel, code.mul(i, _int(self._registers * WIDTH)))
            tokens = [self.register(here, index) for index in range(self._registers)]
            for start, places in zip(starts, sums, strict=True):
                factor = self._everywhere(self.number(start, i))
                for place, some in zip(places, tokens, strict=True):
                    before = code.load(place, typ=_REGISTER)
                    code.store(code.call(self.function(_MULTIPLY_ADD), [factor, some, before]), place)
        outs = self._starts(out, "out_row")
        with code.if_then(_is_true(code, self.numbers["adds"])):
            for start, places in zip(outs, sums, strict=True):
                for index, place in enumerate(places):
                    before = self.register(start, index)
                    code.store(code.fadd(before, code.load(place, typ=_REGISTER)), place)
        for start, places in zip(outs, sums, strict=True):
            for index, place in enumerate(places):
                target = self.at(start, _int(index * WIDTH))
                code.store(code.load(place, typ=_REGISTER), target, align=4)
        code.ret_void()

    def _starts(self, address: Any, between: str) -> list[Any]:
        return [
            self.at(address, self.code.mul(_int(row), self.numbers[between])) for row in range(self._rows)
        ]

    def _everywhere(self, number: Any) -> Any:
        undefined = ir.Constant(_REGISTER, ir.Undefined)
        one = self.code.insert_element(undefined, number, _int(0))
        return self.code.shuffle_vector(one, undefined, ir.Constant(_BITS, [0] * WIDTH))


class _Product(_Code):
    def __init__(self, made: ir.Module, name: str, weight_type: Any) -> None:
        super().__init__(made, name, 4, NUMBERS)
        self._weight, self._x, self._out, self._space = self.addresses
        self._weight_type = weight_type

    def write(self) -> None:
        code, num_outputs = self.code, self.numbers["num_outputs"]
        self._copy_tokens()
        is_one = code.icmp_signed("<=", self.numbers["num_tokens"], _int(WIDTH))
        rows = code.select(is_one, _int(ROWS_OF_ONE), _int(ROWS))
        whole = code.sub(num_outputs, code.srem(num_outputs, rows))
        with code.if_else(is_one) as (one, more):
            with one, self.loop(_int(0), whole, ROWS_OF_ONE) as row:
                self._multiply(row, ROWS_OF_ONE)
            with more, self.loop(_int(0), whole, ROWS) as row:
                self._multiply(row, ROWS)
        with self.loop(whole, num_outputs) as row:
            self._multiply(row, 1)
        code.ret_void()

    def _copy_tokens(self) -> None:
        code, num_tokens = self.code, self.numbers["num_tokens"]
        last = code.sub(num_tokens, _int(1))
        with self.loop(_int(0), num_tokens, PANEL) as first:
            panel, width = self._panel(first), self._width(first)
            with self.loop(_int(0), self.numbers["num_inputs"]) as i, self.loop(_int(0), width) as j:
                token = code.add(first, j)
                token = code.select(code.icmp_signed("<", token, last), token, last)
                source = code.add(
                    code.mul(i, self.numbers["x_row"]), code.mul(token, self.numbers["x_column"])
                )
                code.store(self.number(self._x, source), self.at(panel, code.add(code.mul(i, width), j)))

    def _multiply(self, row: Any, rows: int) -> None:
        """Some rows of the weight with all tokens."""
        code = self.code
        weight, between = self._floats(row, rows)
        out = self.at(self._out, code.mul(row, self.numbers["out_row"]))
        with (
            self.loop(_int(0), self.numbers["num_tokens"], PANEL) as first,
            self._whole_or_aside(self.at(out, first), first, rows) as (target, target_row, adds),
        ):
            addresses = [weight, self._panel(first), target]
            arguments = [*addresses, between, self.numbers["num_inputs"], target_row, adds]
            if rows == ROWS_OF_ONE:
                code.call(self.function(_tile(rows, 1)), arguments)
            else:
                with code.if_else(code.icmp_signed(">", self._left(first), _int(WIDTH))) as (two, one):
                    with two:
                        code.call(self.function(_tile(rows, 2)), arguments)
                    with one:
                        code.call(self.function(_tile(rows, 1)), arguments)

    def _floats(self, row: Any, rows: int) -> tuple[Any, Any]:
        """Some rows of the weight, and how far one is from the next."""
        code, weight_row, num_inputs = self.code, self.numbers["weight_row"], self.numbers["num_inputs"]
        source = self.at(self._weight, code.mul(row, weight_row), self._weight_type)
        if self._weight_type is _FLOAT:
            return source, weight_row
        wide = self._behind_panels()
        with self.loop(_int(0), _int(rows)) as r, self.loop(_int(0), num_inputs, WIDTH) as i:
            place = self.at(source, code.add(code.mul(r, weight_row), i), _BFLOAT16)
            narrow = code.load(place, typ=ir.VectorType(_BFLOAT16, WIDTH), align=2)
            bits = code.shl(code.zext(narrow, _BITS), ir.Constant(_BITS, [16] * WIDTH))
            target = self.at(wide, code.add(code.mul(r, num_inputs), i))
            code.store(code.bitcast(bits, _REGISTER), target, align=4)
        return wide, num_inputs

    @contextmanager
    def _whole_or_aside(self, out: Any, first_token: Any, rows: int) -> Iterator[tuple[Any, Any, Any]]:
        """Where a tile shall write, how far a row is from the next, and whether it adds: `out`, or a place
        aside if fewer tokens are left than the tile has; so many are then taken over."""
        code, out_row, left = self.code, self.numbers["out_row"], self._left(first_token)
        is_whole = code.icmp_signed(">=", left, self._width(first_token))
        aside = self.at(self._behind_panels(), code.mul(_int(ROWS_OF_ONE), self.numbers["num_inputs"]))
        yield (
            code.select(is_whole, out, aside),
            code.select(is_whole, out_row, _int(PANEL)),
            code.select(is_whole, self.numbers["adds"], _int(0)),
        )
        with (
            code.if_then(code.not_(is_whole)),
            self.loop(_int(0), _int(rows)) as r,
            self.loop(_int(0), left) as j,
        ):
            value = self.number(aside, code.add(code.mul(r, _int(PANEL)), j))
            target = self.at(out, code.add(code.mul(r, out_row), j))
            sums = code.fadd(code.load(target, typ=_FLOAT), value)
            code.store(code.select(_is_true(code, self.numbers["adds"]), sums, value), target)

    def _panel(self, first_token: Any) -> Any:
        return self.at(self._space, self.code.mul(first_token, self.numbers["num_inputs"]))

    def _behind_panels(self) -> Any:
        tokens = self.code.add(self.numbers["num_tokens"], _int(WIDTH - 1))
        return self._panel(self.code.and_(tokens, _int(-WIDTH)))

    def _width(self, first_token: Any) -> Any:
        is_wide = self.code.icmp_signed(">", self._left(first_token), _int(WIDTH))
        return self.code.select(is_wide, _int(PANEL), _int(WIDTH))

    def _left(self, first_token: Any) -> Any:
        return self.code.sub(self.numbers["num_tokens"], first_token)


def _tile(rows: int, registers: int) -> str:
    return f"tile_{rows}_{registers}"


def _int(number: int) -> ir.Constant:
    return ir.Constant(_INT, number)


def _is_true(code: ir.IRBuilder, number: Any) -> Any:
    return code.icmp_signed("!=", number, _int(0))
