"""The memory accesses of a kernel, in the form that `torch.compile` expects.

For a kernel that a user's function launches, PyTorch determines the tensors that it stores to: it
lowers the kernel to Triton's IR, walks the operations, and follows the pointers of loads and stores
back to the arguments. `accessed_arguments` finds them here, so the module that PyTorch walks has
only a load or store of each accessed argument itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Any

from tilewright.backends import GPUTarget, backend_named
from tilewright.compiler import ASTSource as KernelOfTypes
from tilewright.compiler import accessed_arguments, frontend_options, name_of_type, options_of
from tilewright.ir import Effect, Function
from tilewright.language import TensorDescriptor
from tilewright.runtime import Spec, argument_key
from tilewright.support.data_class import dataclass

Specialized = tuple[str, object]


@dataclass(frozen=True)
class Identified:
    """A value, block or region: PyTorch compares these by number."""

    number: int

    def id(self) -> int:
        """The number."""
        return self.number


@dataclass(frozen=True)
class Block(Identified):
    """The body of the function, whose arguments are those of the kernel."""

    arguments: Sequence[Identified]
    region: Identified

    def get_num_arguments(self) -> int:
        """The number of items."""
        return len(self.arguments)

    def get_argument(self, index: int) -> Identified:
        """The item at an index."""
        return self.arguments[index]

    def get_parent(self) -> Identified:
        """The region."""
        return self.region


@dataclass(frozen=True)
class Operation:
    """A load, a store, or the return of the function; or, without a block, the function."""

    name: str
    block: Block | None
    operands: Sequence[Identified] = ()
    regions: Sequence[Identified] = ()
    symbol: str = ""

    def get_name(self) -> str:
        """The name in Triton's dialect."""
        return self.name

    def get_block(self) -> Block | None:
        """The block that it is in."""
        return self.block

    def get_num_operands(self) -> int:
        """The number of items."""
        return len(self.operands)

    def get_operand(self, index: int) -> Identified:
        """The item at an index."""
        return self.operands[index]

    def get_num_results(self) -> int:
        """None: loaded values are not used."""
        return 0

    def get_num_regions(self) -> int:
        """An attribute of the function."""
        return len(self.regions)

    def get_region(self, index: int) -> Identified:
        """The item at an index."""
        return self.regions[index]

    def get_str_attr(self, name: str) -> str:
        """`sym_name` of a function."""
        return self.symbol


@dataclass(frozen=True)
class AccessModule:
    """The operations in post-order."""

    operations: Sequence[Operation] = field(default_factory=list[Operation])

    def verify(self) -> bool:
        """True: the kernel has been lowered."""
        return True

    def walk(self, visit: Callable[[Operation], None]) -> None:
        """Call a function with each operation."""
        for operation in self.operations:
            visit(operation)


def access_module(function: Function, places: Sequence[int], arguments: int) -> AccessModule:
    """The module of a kernel. places: the positions of its arguments in Triton's IR, and the number
    of arguments there."""
    values = [Identified(number) for number in range(arguments)]
    region = Identified(arguments)
    block = Block(arguments + 1, values, region)

    def accesses(name: str, effect: Effect) -> Iterator[Operation]:
        for position in accessed_arguments(function, effect):
            yield Operation(name, block, [values[places[position]]])

    inside = [*accesses("tt.load", Effect.READ), *accesses("tt.store", Effect.WRITE)]
    whole = Operation("tt.func", None, regions=[region], symbol=function.name)
    return AccessModule([*inside, Operation("tt.return", block), whole])


class ASTSource(KernelOfTypes):
    """A Python kernel with types, as `tilewright.ASTSource`."""

    def make_ir(
        self,
        target: GPUTarget,
        options: object,
        codegen_fns: object,
        module_map: object,
        context: object,
    ) -> AccessModule:
        """The accesses of the kernel as a module of Triton's IR. Errors: CompilationErrors."""
        backend = backend_named(target.backend)
        front = frontend_options(backend, options_of(backend, {}), target)
        kernel = self.lower(front).kernel
        places, count = _places_in_triton(self)
        return access_module(kernel, places, count)


def _places_in_triton(source: KernelOfTypes) -> tuple[list[int], int]:
    """The positions of our run-time arguments in Triton's IR, and their number there. A descriptor
    has its pointer, all strides and all extents there; ours has no last stride."""
    places: list[int] = []
    end = 0
    for spec in source.arguments.args:
        if spec.kind == "descriptor":
            places += range(end, end + len(spec.items))
            end += 1 + 2 * (len(spec.items) // 2)
        elif spec.kind == "value":
            places.append(end)
            end += 1
    return places, end


class context:
    """An empty context of MLIR."""


def load_dialects(context: object) -> None:
    """Do nothing: there are no dialects."""


def native_specialize_impl(
    backend: object, arg: Any, is_const: bool, specialize_value: bool, align: bool
) -> Specialized:
    """The type of an argument and its specialization: "D" for a multiple of 16, or the value of a
    constant."""
    key, value = argument_key(arg)
    if not isinstance(key, Spec):
        if isinstance(arg, TensorDescriptor):
            return mangle_type(arg), None
        return ("constexpr", value) if specialize_value or value is None else ("i32", None)
    name = name_of_type(key.type)
    divisible = align and (specialize_value or name.startswith("*")) and key.divisor % 16 == 0
    return (f"*k{name[1:]}" if is_const and name.startswith("*") else name), "D" * divisible or None


def mangle_type(arg: Any, specialize: bool = False) -> str:
    """The type of an argument by the name that signatures have for it."""
    if isinstance(arg, TensorDescriptor):
        element = mangle_type(arg.base)[1:]
        return f"tensordesc<{element}{[int(extent) for extent in arg.block_shape]}>"
    if type(arg) is int and not specialize:
        arg = arg + 2 if arg == 1 else arg  # 1 would be a constant
    key, _ = argument_key(arg)
    return name_of_type(key.type) if isinstance(key, Spec) else "constexpr"
