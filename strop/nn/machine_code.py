"""Code of LLVM for the machine that it runs on: a builder of loops over float32 numbers, and its compilation.

Nothing is compiled at installation; see `own_code`.
"""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import binding, ir

from strop.errors import RunError
from strop.nn.own_code import WIDTH

INT, FLOAT = ir.IntType(64), ir.FloatType()
REGISTER = ir.VectorType(FLOAT, WIDTH)
BITS = ir.VectorType(ir.IntType(32), WIDTH)
_ADDRESS = ir.PointerType()


class Code:
    """Of a function of so many addresses and then `numbers`, which are integers."""

    def __init__(self, module: ir.Module, name: str, num_addresses: int, numbers: Sequence[str]) -> None:
        form = ir.FunctionType(ir.VoidType(), [_ADDRESS] * num_addresses + [INT] * len(numbers))
        function = ir.Function(module, form, name)
        self.addresses = function.args[:num_addresses]
        for address in self.addresses:
            address.add_attribute("noalias")
        self.numbers = dict(zip(numbers, function.args[num_addresses:], strict=True))
        entry, start = function.append_basic_block(), function.append_basic_block()
        self.code = ir.IRBuilder(entry)
        self.code.branch(start)
        self.code.position_at_end(start)

    def call(self, name: str, arguments: Sequence[Any]) -> Any:
        """A function of the module."""
        return self.code.call(self.code.module.get_global(name), arguments)

    def of_registers(self, name: str, arguments: Sequence[Any]) -> Any:
        """An operation that LLVM knows, number by number."""
        module, full = self.code.module, f"llvm.{name}.v{WIDTH}f32"
        if full not in module.globals:
            ir.Function(module, ir.FunctionType(REGISTER, [REGISTER] * len(arguments)), full)
        return self.call(full, arguments)

    def at(self, address: Any, index: Any, kind: Any = FLOAT) -> Any:
        return self.code.gep(address, [index], inbounds=True, source_etype=kind)

    def number(self, address: Any, index: Any) -> Any:
        return self.code.load(self.at(address, index), typ=FLOAT)

    def register(self, address: Any, index: Any) -> Any:
        """The numbers from `index` on."""
        return self.code.load(self.at(address, index), typ=REGISTER, align=4)

    def put(self, value: Any, address: Any, index: Any) -> None:
        """A number or a register."""
        self.code.store(value, self.at(address, index), align=4)

    def everywhere(self, number: Any) -> Any:
        undefined = ir.Constant(REGISTER, ir.Undefined)
        one = self.code.insert_element(undefined, number, integer(0))
        return self.code.shuffle_vector(one, undefined, ir.Constant(BITS, [0] * WIDTH))

    def variable(self, first: Any) -> Any:
        """That has this value now."""
        with self.code.goto_entry_block():
            place = self.code.alloca(first.type)
        self.code.store(first, place)
        return place

    def value(self, variable: Any) -> Any:
        return self.code.load(variable, typ=variable.allocated_type)

    @contextmanager
    def loop(self, start: Any, stop: Any, step: int = 1) -> Iterator[Any]:
        """What is written inside runs for start, start + step, …, while that is less than `stop`."""
        code, place = self.code, self.variable(start)
        head, body, end = (code.append_basic_block() for _ in range(3))
        code.branch(head)
        code.position_at_end(head)
        index = self.value(place)
        code.cbranch(code.icmp_signed("<", index, stop), body, end)
        code.position_at_end(body)
        yield index
        code.store(code.add(index, integer(step)), place)
        code.branch(head)
        code.position_at_end(end)

    def is_true(self, number: Any) -> Any:
        return self.code.icmp_signed("!=", number, integer(0))


def integer(number: int) -> ir.Constant:
    return ir.Constant(INT, number)


def registers_of(number: float) -> ir.Constant:
    return ir.Constant(REGISTER, [number] * WIDTH)


class Compiled:
    """Functions of a module, by name; they run without Python's lock. Raises RunError where no memory may be
    executed."""

    def __init__(self, module: ir.Module) -> None:
        try:
            binding.check_jit_execution()
        except OSError as error:
            raise RunError(
                f"this machine lets no code be made while a program runs ({error}); allow it, or set "
                "ATEN_CPU_CAPABILITY=default, which goes without"
            ) from error
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        machine = binding.Target.from_default_triple().create_target_machine(
            cpu=binding.get_host_cpu_name(), features=binding.get_host_cpu_features().flatten(), opt=3
        )
        parsed = binding.parse_assembly(str(module))
        passes = binding.create_new_module_pass_manager()
        passes.add_sroa_pass()  # variables become registers; more passes do not make it faster
        passes.run(parsed, binding.create_pass_builder(machine, binding.create_pipeline_tuning_options()))
        self._owner = binding.create_mcjit_compiler(parsed, machine)
        self._owner.finalize_object()

    def function(self, name: str, num_addresses: int, num_numbers: int) -> Callable[..., None]:
        form = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * num_addresses, *[ctypes.c_int64] * num_numbers)
        function: Any = form(self._owner.get_function_address(name))
        function.owner = self._owner  # of the code, which goes with it
        return function
