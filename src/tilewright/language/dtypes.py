"""Types as users see them: `dtype`, `pointer_type`, `block_type`, each a view of an IR type.

Names are Triton's ("fp32", "int32", "fp8e4nv"). A type with the same name is the same type: compare
with `==`. `type_of` maps an IR type to its view, `.ir` maps back.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from math import prod

from tilewright.ir import types as ir
from tilewright.language.compile_time import constexpr, unwrap
from tilewright.support import cached_property, errors


class SIGNEDNESS(Enum):
    """Whether an integer type has negative values."""

    SIGNED = 0
    UNSIGNED = 1


class KIND(Enum):
    """The order of kinds that weak literals are compared by."""

    BOOLEAN = 0
    INTEGRAL = 1
    FLOATING = 2


_FORMATS: dict[str, ir.DType] = {
    "int1": ir.i1,
    **{f"{sign}int{bits}": ir.dtype_named(f"{sign or 'i'}{bits}")
       for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "fp8e4nv": ir.f8e4m3, "fp8e5": ir.f8e5m2,
    "fp8e4b8": ir.f8e4b8, "fp8e5b16": ir.f8e5b16, "fp8e4b15": ir.f8e4b15,
    "fp16": ir.f16, "bf16": ir.bf16, "fp32": ir.f32, "fp64": ir.f64,
}  # fmt: skip
_KINDS = {
    "bool": KIND.BOOLEAN, "int": KIND.INTEGRAL, "uint": KIND.INTEGRAL, "float": KIND.FLOATING,
}  # fmt: skip


class dtype:
    """A scalar type by its Triton name; raises ValueError for an unknown name."""

    SIGNEDNESS = SIGNEDNESS
    KIND = KIND
    SINT_TYPES = [name for name, format_ in _FORMATS.items() if format_.kind == "int"]
    UINT_TYPES = [name for name, format_ in _FORMATS.items() if format_.kind in ("bool", "uint")]
    FP_TYPES = [name for name, format_ in _FORMATS.items() if format_.is_float]
    STANDARD_FP_TYPES = ["fp16", "bf16", "fp32", "fp64"]
    OTHER_TYPES = ["void"]

    def __init__(self, name: str) -> None:
        name = str(unwrap(name))
        if name not in _FORMATS:
            raise errors.InvalidValue("dtype", "name", f"one of {', '.join(_FORMATS)}", name)
        self.name = name
        self._format = _FORMATS[name]

    @staticmethod
    def of(type_: ir.DType) -> dtype:
        """The view of a scalar IR type."""
        return _VIEWS[type_]

    @property
    def ir(self) -> ir.Type:
        """The IR type."""
        return self._format

    @property
    def python_name(self) -> str:
        """The name of the type in `tilewright.language`: "float32" for "fp32"."""
        return "bfloat16" if self.name == "bf16" else self.name.replace("fp", "float")

    @property
    def scalar(self) -> dtype:
        """The element type of a block, or the type itself."""
        return self

    @property
    def cache_key_part(self) -> str:
        """The name, which identifies the type in cache keys."""
        return self.name

    def codegen_name(self) -> str:
        """The name of the type in `tilewright.language`."""
        return self.python_name

    def mangle(self) -> str:
        """The type as a part of a symbol: "i32", "u1", "fp16", "Pfp32", "fp32S16_32S"."""
        return (
            f"{'i' if self._is_signed else 'u'}{self._format.bits}" if self.is_int() else self.name
        )

    def with_element_ty(self, element_ty: dtype) -> dtype:
        """The type with other elements; for a scalar, the element type itself."""
        return element_ty

    @property
    def primitive_bitwidth(self) -> int:
        """Bits of one value; 1 for int1."""
        return self._format.bits

    @property
    def itemsize(self) -> int:
        """Bytes of one value in memory."""
        return (self._format.bits + 7) // 8

    @property
    def int_bitwidth(self) -> int:
        """Bits of an integer type."""
        return self._format.bits

    @property
    def int_signedness(self) -> SIGNEDNESS:
        """Signedness of an integer type; int1 counts as unsigned."""
        return SIGNEDNESS.SIGNED if self._is_signed else SIGNEDNESS.UNSIGNED

    @property
    def fp_mantissa_width(self) -> int:
        """Explicit fraction bits of a float type."""
        return self._format.mantissa

    @property
    def exponent_bias(self) -> int:
        """Exponent bias of a float type."""
        return self._format.bias

    @property
    def _is_signed(self) -> bool:
        """Whether it has negative values; floats do."""
        return self._format.is_signed or self._format.is_float

    def kind(self) -> KIND:
        """Bool, integer or float, in promotion order."""
        return _KINDS[self._format.kind]

    def get_int_min_value(self) -> int:
        """Smallest value of an integer type."""
        return -(1 << (self._format.bits - 1)) if self._is_signed else 0

    def get_int_max_value(self) -> int:
        """Largest value of an integer type."""
        return (1 << (self._format.bits - (1 if self._is_signed else 0))) - 1

    def is_fp8(self) -> bool:
        return self.is_floating() and self._format.bits == 8

    def is_fp8e4nv(self) -> bool:
        return self.name == "fp8e4nv"

    def is_fp8e5(self) -> bool:
        return self.name == "fp8e5"

    def is_fp8e4b8(self) -> bool:
        return self.name == "fp8e4b8"

    def is_fp8e5b16(self) -> bool:
        return self.name == "fp8e5b16"

    def is_fp8e4b15(self) -> bool:
        return self.name == "fp8e4b15"

    def is_fp16(self) -> bool:
        return self.name == "fp16"

    def is_bf16(self) -> bool:
        return self.name == "bf16"

    def is_fp32(self) -> bool:
        return self.name == "fp32"

    def is_fp64(self) -> bool:
        return self.name == "fp64"

    def is_int1(self) -> bool:
        return self.name == "int1"

    def is_int8(self) -> bool:
        return self.name == "int8"

    def is_int16(self) -> bool:
        return self.name == "int16"

    def is_int32(self) -> bool:
        return self.name == "int32"

    def is_int64(self) -> bool:
        return self.name == "int64"

    def is_uint8(self) -> bool:
        return self.name == "uint8"

    def is_uint16(self) -> bool:
        return self.name == "uint16"

    def is_uint32(self) -> bool:
        return self.name == "uint32"

    def is_uint64(self) -> bool:
        return self.name == "uint64"

    def is_bool(self) -> bool:
        return self.is_int1()

    def is_floating(self) -> bool:
        return self._format.is_float

    def is_standard_floating(self) -> bool:
        return self.name in self.STANDARD_FP_TYPES

    def is_int(self) -> bool:
        """Any integer type, int1 included."""
        return not self._format.is_float

    def is_int_signed(self) -> bool:
        return self.is_int() and self._is_signed

    def is_int_unsigned(self) -> bool:
        return self.is_int() and not self._is_signed

    def is_void(self) -> bool:
        return False

    def is_ptr(self) -> bool:
        return False

    def is_const(self) -> bool:
        """Whether it is a pointer that may not be stored to."""
        return False

    def is_block(self) -> bool:
        return False

    @staticmethod
    def is_dtype(name: str) -> bool:
        """Whether a scalar type is called `name`."""
        return name in _FORMATS

    def __eq__(self, other: object) -> bool:
        other = unwrap(other)
        # By name, so that views made separately are equal.
        return isinstance(other, dtype) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"triton.language.{self.python_name}"


class pointer_type(dtype):
    """Address of elements of one type. `element_ty` may be a constexpr; `const` forbids stores."""

    def __init__(
        self, element_ty: dtype, address_space: int = 1, const: bool | constexpr = False
    ) -> None:
        element = unwrap(element_ty)
        if not isinstance(element, dtype) or element.is_ptr():
            raise errors.InvalidValue("pointer_type", "element_ty", "a scalar dtype", element_ty)
        # A block of pointers is no pointer type: a block counts as its element here.
        self.element_ty: dtype = element.scalar
        self.address_space = int(address_space)
        self.const = bool(const)
        self.name = f"{'const ' if self.const else ''}pointer<{element}>"
        self._format = ir.u64  # an address

    @cached_property
    def _ir(self) -> ir.PointerType:
        element = self.element_ty.ir
        assert isinstance(element, ir.DType)
        return ir.PointerType(element, self.const)

    @property
    def ir(self) -> ir.Type:
        return self._ir

    def kind(self) -> KIND:
        """Pointers take no part in promotion."""
        raise errors.InvalidOperation("promote a pointer", f"{self} is not a number type")

    def is_int(self) -> bool:
        return False

    def is_ptr(self) -> bool:
        return True

    def is_const(self) -> bool:
        return self.const

    def mangle(self) -> str:
        return f"P{self.element_ty.mangle()}"

    def __repr__(self) -> str:
        return self.name


class block_type(dtype):
    """Type of a tile: a static shape of elements of one scalar or pointer type."""

    def __init__(self, element_ty: dtype, shape: Sequence[int | constexpr]) -> None:
        self.element_ty: dtype = element_ty
        self.shape: tuple[int, ...] = tuple(int(extent) for extent in shape)
        if not self.shape:
            raise errors.InvalidValue("block_type", "shape", "one extent or more", shape)
        self.numel = prod(self.shape)
        self.name = f"<{list(self.shape)}, {element_ty}>"
        # The bits of a tile's type are those of one element, as in Triton.
        self._format = element_ty._format

    @property
    def ir(self) -> ir.Type:
        return ir.with_shape(self.element_ty.ir, self.shape)

    @property
    def scalar(self) -> dtype:
        return self.element_ty

    def kind(self) -> KIND:
        return self.element_ty.kind()

    @property
    def nbytes(self) -> int:
        """Bytes of all elements; none for int1, as in Triton."""
        return self.numel * (self.element_ty.primitive_bitwidth // 8)

    def mangle(self) -> str:
        return f"{self.scalar.mangle()}S{'_'.join(map(str, self.shape))}S"

    def with_element_ty(self, element_ty: dtype) -> block_type:
        return block_type(element_ty, self.shape)

    def get_block_shapes(self) -> tuple[int, ...]:
        """The shape."""
        return self.shape

    def is_block(self) -> bool:
        return True

    def is_ptr(self) -> bool:
        return False

    def __repr__(self) -> str:
        return self.name


int1 = dtype("int1")
int8 = dtype("int8")
int16 = dtype("int16")
int32 = dtype("int32")
int64 = dtype("int64")
uint8 = dtype("uint8")
uint16 = dtype("uint16")
uint32 = dtype("uint32")
uint64 = dtype("uint64")
float8e4nv = dtype("fp8e4nv")
float8e5 = dtype("fp8e5")
float8e4b8 = dtype("fp8e4b8")
float8e5b16 = dtype("fp8e5b16")
float8e4b15 = dtype("fp8e4b15")
float16 = dtype("fp16")
bfloat16 = dtype("bf16")
float32 = dtype("fp32")
float64 = dtype("fp64")
pi32_t = pointer_type(int32)

_VIEWS: dict[ir.Type, dtype] = {format_: dtype(name) for name, format_ in _FORMATS.items()}


def type_of(type_: ir.Type) -> dtype:
    """The view of an IR type: dtype, pointer_type or block_type. A layout is not part of it."""
    view = _VIEWS.get(type_)
    if view is None:
        if isinstance(type_, ir.TileType):
            view = block_type(type_of(type_.element), type_.shape)
        else:
            assert isinstance(type_, ir.PointerType)
            view = pointer_type(type_of(type_.element), const=type_.const)
        # One view per IR type: types are compared and described often.
        _VIEWS[type_] = view
    return view


def get_int_dtype(bitwidth: int, signed: bool) -> dtype:
    """The integer type of a width (1, 8, 16, 32 or 64) and signedness."""
    if int(bitwidth) == 1:
        return int1
    return dtype(f"{'' if signed else 'u'}int{int(bitwidth)}")


class const:
    """Annotation of a pointer parameter that the kernel does not store to: `x: tl.const`."""
