"""Loads and stores of lane values: contiguous vectors where the address is affine, else gathers.

Memory holds i1 as a byte. LLVM's masked intrinsics become predicated instructions where the CPU has
them (AVX-512, AVX2 for 32 and 64 bits) and branches elsewhere.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.backends.cpu.lower.lane_values import Address, LaneMath, Lanes, holds, uniform
from tilewright.backends.cpu.lower.narrow_stores import hide_origin
from tilewright.backends.cpu.lower.scratch_memory import ScratchBlock
from tilewright.ir.types import DType, PointerType
from tilewright.llvm import Code, Val, integer_literal, llvm_type, mangle, vector_of
from tilewright.support.data_class import dataclass

Element = DType | PointerType


@dataclass(frozen=True, slots=True)
class Buffer:
    """A materialized tile in scratch memory: extents, strides in elements.

    base: address of element 0; blocks: the scratch memory that it may point to
    """

    base: Val
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    element: Element
    blocks: tuple[ScratchBlock, ...]

    @property
    def pointer(self) -> Val:
        """The address of element 0, for code that is emitted now."""
        self.touch()
        return self.base

    def touch(self) -> None:
        """Record that the code that is emitted now uses the buffer."""
        for block in self.blocks:
            block.touch()


def memory_type(element: Element) -> str:
    """LLVM type of an element in memory."""
    return "i8" if isinstance(element, DType) and element.is_bool else llvm_type(element)


def from_memory(code: Code, value: Val, element: Element) -> Val:
    """The register value of a loaded one: i1 is byte != 0."""
    if isinstance(element, DType) and element.is_bool:
        return code.compare("icmp ne", value, code.splat(integer_literal(0, "i8"), value.width))
    return value


def to_memory(code: Code, value: Val, element: Element) -> Val:
    """A register value as it is stored."""
    if isinstance(element, DType) and element.is_bool:
        return code.convert("zext", value, "i8")
    return value


@dataclass(frozen=True, slots=True)
class Access:
    """One load or store: address, element type, mask."""

    address: Address | Lanes
    element: Element
    mask: Lanes | None = None
    volatile: bool = False

    @property
    def align(self) -> int:
        # A pointer has no larger alignment than that of its element.
        return self.element.bytes

    @property
    def guards(self) -> tuple[Val, ...]:
        """The values on which a load depends besides its address: its mask, even one that is known
        to hold."""
        return () if self.mask is None else (self.mask.base,)


def load(math: LaneMath, access: Access, other: Lanes | None = None) -> Lanes:
    """Read one element per lane; lanes masked off get `other`, or an arbitrary value without it."""
    code, address = math.code, access.address
    mask = useful_mask(access.mask)
    other = None if mask is None else other
    same = all(lanes is None or lanes.is_uniform for lanes in (mask, other))
    if isinstance(address, Address) and lane_stride(address) == 0 and same:
        return _load_scalar(math, access, mask, other)
    if isinstance(address, Address) and lane_stride(address) == 1:
        raw = _load_contiguous(math, access, mask, other)
    else:
        raw = _gather(math, access, mask, other)
    return math.wrap(from_memory(code, raw, access.element))


def useful_mask(mask: Lanes | None) -> Lanes | None:
    """The mask of an access; None where it holds."""
    return None if mask is not None and holds(mask) else mask


def lane_stride(address: Address) -> int | None:
    """Elements from one lane to the next; None if they differ."""
    return 0 if address.offset is None else address.offset.stride


def _load_scalar(math: LaneMath, access: Access, mask: Lanes | None, other: Lanes | None) -> Lanes:
    code, kind = math.code, memory_type(access.element)
    assert isinstance(access.address, Address)
    pointer = math.first(access.address, kind)
    if mask is None:
        text = f"load {_volatile(access)}{kind}, {pointer.typed}, align {access.align}"
        # Others may be hoisted: fusion separates loads from writes that could alias them.
        here = access.volatile
        raw = code.let_here(text, kind) if here else code.let(text, kind, pointer, *access.guards)
        return uniform(from_memory(code, raw, access.element))
    # A masked load of one lane instead of a branch: `let` can hoist it.
    single = LaneMath(code, 1)
    one = f"<1 x {kind}>"
    fill = _other(single, access, other)
    operands = (pointer, mask.base, fill)
    as_mask = code.let(f"insertelement <1 x i1> poison, {mask.base.typed}, i64 0", "<1 x i1>",
                       mask.base)  # fmt: skip
    as_fill = code.let(f"insertelement {one} poison, {fill.typed}, i64 0", one, fill)
    got = _masked_load(code, one, pointer, access.align, as_mask, as_fill)
    raw = code.let(f"extractelement {got.typed}, i64 0", kind, *operands)
    return uniform(from_memory(code, raw, access.element))


def _volatile(access: Access) -> str:
    return "volatile " if access.volatile else ""


def _other(math: LaneMath, access: Access, other: Lanes | None) -> Val:
    """The values of masked-off lanes, in memory form."""
    if other is None:
        return math.undefined(memory_type(access.element))
    return to_memory(math.code, math.vector(other), access.element)


def _load_contiguous(
    math: LaneMath, access: Access, mask: Lanes | None, other: Lanes | None
) -> Val:
    code, kind = math.code, memory_type(access.element)
    assert isinstance(access.address, Address)
    pointer = math.first(access.address, kind)
    type_ = vector_of(kind, math.width)
    if mask is None:
        text = f"load {_volatile(access)}{type_}, {pointer.typed}, align {access.align}"
        here = access.volatile
        return (
            code.let_here(text, type_) if here else code.let(text, type_, pointer, *access.guards)
        )
    fill = _other(math, access, other)
    return _masked_load(code, type_, pointer, access.align, math.vector(mask), fill)


def _masked_load(code: Code, type_: str, pointer: Val, align: int, mask: Val, fill: Val) -> Val:
    name = f"llvm.masked.load.{mangle(type_)}.p0"
    code.module.declare(name, f"declare {type_} @{name}(ptr, {mask.type}, {type_})")
    arguments = f"ptr align {align} {pointer}, {mask.typed}, {fill.typed}"
    return code.let(f"call {type_} @{name}({arguments})", type_, pointer, mask, fill)


def _pointers(math: LaneMath, access: Access) -> Val:
    if isinstance(access.address, Address):
        return math.addresses(access.address, memory_type(access.element))
    return math.vector(access.address)


def _gather(math: LaneMath, access: Access, mask: Lanes | None, other: Lanes | None) -> Val:
    code, type_ = math.code, vector_of(memory_type(access.element), math.width)
    pointers = _pointers(math, access)
    lanes = math.all_lanes() if mask is None else math.vector(mask)
    lanes = replace(lanes, level=max([lanes.level, *(guard.level for guard in access.guards)]))
    fill = _other(math, access, other)
    if math.width == 1:
        return _gather_one(code, type_, pointers, access, lanes, fill)
    name = f"llvm.masked.gather.{mangle(type_)}.{mangle(pointers.type)}"
    code.module.declare(name, f"declare {type_} @{name}({pointers.type}, {lanes.type}, {type_})")
    addresses = f"{pointers.type} align {access.align} {pointers}"
    arguments = f"{addresses}, {lanes.typed}, {fill.typed}"
    return code.let(f"call {type_} @{name}({arguments})", type_, pointers, lanes, fill)


def _gather_one(code: Code, type_: str, pointer: Val, access: Access, mask: Val, fill: Val) -> Val:
    scalar = Access(Address(pointer), access.element, uniform(mask), access.volatile)
    # Without `fill`, which is in memory form; the select below inserts it.
    lanes = _load_scalar(LaneMath(code, 1), scalar, useful_mask(uniform(mask)), None)
    if mask.constant == 1:
        return to_memory(code, lanes.base, access.element)
    return code.select(mask, to_memory(code, lanes.base, access.element), fill)


def store(math: LaneMath, access: Access, value: Lanes, hint: str = "") -> None:
    """Write one element per lane where the mask is true; `hint` is LLVM metadata."""
    code, address, mask = math.code, access.address, useful_mask(access.mask)
    kind = memory_type(access.element)
    stride = lane_stride(address) if isinstance(address, Address) else None
    if isinstance(address, Address) and stride == 0 and value.is_uniform:
        if mask is None or mask.is_uniform:
            _store_scalar(math, access, value, mask)
            return
    # In memory form, so that a widened i1 is hidden.
    lanes = hide_origin(code, to_memory(code, math.vector(value), access.element))
    if isinstance(address, Address) and (stride == 1 or (math.width == 1 and stride == 0)):
        pointer = math.first(address, kind)
        if mask is None:
            # `_aligned` of streaming_stores.py has proved this alignment.
            align = max(access.align, 16) if hint else access.align
            code.line(f"store {lanes.typed}, {pointer.typed}, align {align}{hint}")
        elif mask.is_uniform:
            _guarded_store(code, lanes, pointer, access.align, mask.base)
        else:
            _masked_store(code, lanes, pointer, access.align, math.vector(mask))
        return
    _scatter(math, access, lanes, mask)


def _store_scalar(math: LaneMath, access: Access, value: Lanes, mask: Lanes | None) -> None:
    code, kind = math.code, memory_type(access.element)
    assert isinstance(access.address, Address)
    pointer = math.first(access.address, kind)
    scalar = to_memory(code, value.base, access.element)
    if mask is None:
        code.line(f"store {scalar.typed}, {pointer.typed}, align {access.align}")
        return
    _guarded_store(code, scalar, pointer, access.align, mask.base)


def _guarded_store(code: Code, scalar: Val, pointer: Val, align: int, mask: Val) -> None:
    then, after = code.label("then"), code.label("after")
    code.line(f"br {mask.typed}, label %{then}, label %{after}")
    code.line(f"{then}:")
    code.line(f"store {scalar.typed}, {pointer.typed}, align {align}")
    code.line(f"br label %{after}")
    code.line(f"{after}:")


def _masked_store(code: Code, lanes: Val, pointer: Val, align: int, mask: Val) -> None:
    if lanes.width == 1:
        _guarded_store(code, lanes, pointer, align, mask)
        return
    name = f"llvm.masked.store.{mangle(lanes.type)}.p0"
    code.module.declare(name, f"declare void @{name}({lanes.type}, ptr, {mask.type})")
    code.line(f"call void @{name}({lanes.typed}, ptr align {align} {pointer}, {mask.typed})")


def _scatter(math: LaneMath, access: Access, lanes: Val, mask: Lanes | None) -> None:
    code, pointers = math.code, _pointers(math, access)
    live = math.all_lanes() if mask is None else math.vector(mask)
    if math.width == 1:
        _guarded_store(code, lanes, pointers, access.align, live)
        return
    name = f"llvm.masked.scatter.{mangle(lanes.type)}.{mangle(pointers.type)}"
    code.module.declare(name, f"declare void @{name}({lanes.type}, {pointers.type}, {live.type})")
    addresses = f"{pointers.type} align {access.align} {pointers}"
    arguments = f"{lanes.typed}, {addresses}, {live.typed}"
    code.line(f"call void @{name}({arguments})")


def buffer_address(math: LaneMath, buffer: Buffer, coords: tuple[Lanes, ...]) -> Address:
    """The addresses of the lanes' elements of a buffer."""
    address = Address(buffer.pointer)
    kind = memory_type(buffer.element)
    for coord, stride in zip(coords, buffer.strides, strict=True):
        type_ = coord.base.element
        step = math.multiply(coord, Lanes(integer_literal(stride, type_)))
        address = math.offset(address, step, True, kind)
    return address


def read_buffer(math: LaneMath, buffer: Buffer, coords: tuple[Lanes, ...]) -> Lanes | Address:
    """The elements of a buffer at the lanes' coordinates."""
    address = buffer_address(math, buffer, coords)
    lanes = load(math, Access(address, buffer.element))
    if isinstance(buffer.element, PointerType) and lanes.is_uniform:
        return Address(lanes.base)
    return lanes


def write_buffer(
    math: LaneMath, buffer: Buffer, coords: tuple[Lanes, ...], value: Lanes | Address
) -> None:
    """Set the elements of a buffer at the lanes' coordinates."""
    if isinstance(value, Address):
        element = buffer.element
        assert isinstance(element, PointerType)
        value = math.wrap(math.addresses(value, memory_type(element.element)))
    store(math, Access(buffer_address(math, buffer, coords), buffer.element), value)
