"""The language without a kernel: types, compile-time values, stubs, tensors."""

from __future__ import annotations

import pickle
from typing import Any, NamedTuple

import pytest

import tilewright
from tilewright import language as tl
from tilewright.ir import Block
from tilewright.ir import types as ir
from tilewright.support import errors


class Recorder:
    """A dispatcher that remembers what it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def call(self, stub: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        self.asked.append((tl.STUBS[stub], args, kwargs))
        return "called"

    def operator(self, name: str, args: tuple[Any, ...]) -> object:
        self.asked.append((name, *args))
        return {"bool": True, "int": 3, "float": 2.5, "index": 4}.get(name, name)

    def call_function(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> object:
        self.asked.append((function, args, kwargs))
        return "ran"


@pytest.fixture
def recorder() -> Any:
    found = Recorder()
    token = tl.ACTIVE.set(found)
    yield found
    tl.ACTIVE.reset(token)


def value(type_: ir.Type) -> tl.tensor:
    return tl.tensor(Block((type_,)).args[0])


# --- types ----------------------------------------------------------------------------------------

EVERY_DTYPE = [tl.dtype.of(t) for t in ir.all_dtypes()]


@pytest.mark.parametrize("found", EVERY_DTYPE, ids=str)
def test_dtypes_agree_with_the_ir(found: tl.dtype) -> None:
    inner = found.ir
    assert isinstance(inner, ir.DType)
    assert tl.type_of(inner) is found or tl.type_of(inner) == found
    assert found.primitive_bitwidth == inner.bits and found.itemsize == inner.bytes
    assert found.is_floating() == inner.is_float
    if inner.is_float:
        assert (found.fp_mantissa_width, found.exponent_bias) == (inner.mantissa, inner.bias)
    else:
        assert (found.get_int_min_value(), found.get_int_max_value()) == (
            inner.min_int,
            inner.max_int,
        )
        assert found.is_int_signed() == inner.is_signed
    assert tl.dtype(found.name) == found and hash(tl.dtype(found.name)) == hash(found)


def test_dtype_names_are_tritons() -> None:
    assert [str(t) for t in (tl.int1, tl.float32, tl.bfloat16, tl.float8e4nv, tl.uint8)] == [
        "int1", "fp32", "bf16", "fp8e4nv", "uint8",
    ]  # fmt: skip
    assert repr(tl.float16) == "triton.language.float16"
    assert tl.float32 != tl.float64 and tl.float32 == tl.constexpr(tl.float32)
    assert tl.get_int_dtype(16, False) == tl.uint16 and tl.get_int_dtype(1, True) == tl.int1
    with pytest.raises(errors.InvalidValue):
        tl.dtype("float")


def test_every_fp8_format_says_what_it_holds() -> None:
    kinds = [tl.float8e4nv, tl.float8e5, tl.float8e4b8, tl.float8e5b16, tl.float8e4b15]
    assert all(kind.is_fp8() and kind.primitive_bitwidth == 8 for kind in kinds)
    formats = [ir.dtype_of(kind.ir) for kind in kinds]
    assert [format_.largest for format_ in formats] == [448, 57344, 240, 57344, 1.75]
    assert [format_.nan_bits for format_ in formats] == [0x7F, 0x7E, 0x80, 0x80, 0x7E]
    assert tl.float8e4b15.is_fp8e4b15() and tl.float8e4b8.is_fp8e4b8()


def test_pointer_and_block_types() -> None:
    pointer = tl.pointer_type(tl.float32)
    assert pointer.is_ptr() and pointer.element_ty == tl.float32 and not pointer.is_int()
    assert pointer.ir is ir.PointerType(ir.f32) and tl.type_of(pointer.ir) == pointer
    assert pointer != tl.pointer_type(tl.float32, const=True)
    block = tl.block_type(tl.int8, [4, tl.constexpr(2)])
    assert block.shape == (4, 2) and block.numel == 8 and block.scalar == tl.int8
    assert block.ir is ir.TileType((4, 2), ir.i8) and tl.type_of(block.ir) == block
    assert block.is_block() and block.primitive_bitwidth == 8


def test_dtypes_pickle() -> None:
    for found in (tl.float32, tl.pointer_type(tl.int8)):
        assert pickle.loads(pickle.dumps(found)) == found


# --- compile-time values --------------------------------------------------------------------------


def test_constexpr_folds_every_operator() -> None:
    a = tl.constexpr(6)
    folded = [a + 1, 1 + a, a - 1, 1 - a, a * 2, a / 4, a // 4, 13 % a, a**2, a & 3, a | 1, a ^ 2]
    assert [c.value for c in folded] == [7, 7, 5, -5, 12, 1.5, 1, 1, 36, 2, 7, 4]
    assert [c.value for c in (a << 1, a >> 1, -a, +a, ~a)] == [12, 3, -6, 6, -7]
    assert [bool(c) for c in (a == 6, a != 6, a < 7, a <= 5, a > 5, a >= 7)] == [
        True, False, True, False, True, False,
    ]  # fmt: skip
    assert isinstance(a == 6, tl.constexpr) and (~tl.constexpr(True)).value is False


def test_constexpr_behaves_as_its_value() -> None:
    a = tl.constexpr(tl.constexpr(4))
    assert (
        list(range(a)) == [0, 1, 2, 3] and int(a) == 4 and float(a) == 4.0 and f"{a:03d}" == "004"
    )
    assert hash(a) == hash(4) and {a: 1}[tl.constexpr(4)] == 1
    items = tl.constexpr((1, 2))
    assert items[tl.constexpr(1)] == 2 and len(items) == 2 and list(items) == [1, 2] and 2 in items
    assert tl.constexpr(max)(3, 4) == 4
    assert a.logical_and(0).value == 0 and a.logical_or(0).value == 4


def test_constexpr_leaves_tensors_their_operators(recorder: Recorder) -> None:
    x, two = value(ir.i32), tl.constexpr(2)
    assert two + x == "add"
    assert recorder.asked[-1] == ("add", two, x)
    assert (two < x) == "gt"


def test_constexpr_functions_see_plain_values() -> None:
    @tl.constexpr_function
    def total(items: tuple[int, ...], more: int = 0) -> int:
        assert not any(isinstance(item, tl.constexpr) for item in (*items, more))
        return sum(items) + more

    assert total((tl.constexpr(1), 2), more=tl.constexpr(3)) == 6  # type: ignore[arg-type]
    assert tl.next_power_of_2(1000) == 1024 and tl.next_power_of_2(0) == 0
    assert tl.standard._log2(8) == 3 and tl.standard._is_power_of_two(12) is False


class Named(NamedTuple):
    x: int
    y: int


def test_unwrap_deep_keeps_containers() -> None:
    found = tl.unwrap_deep((tl.constexpr(1), [tl.constexpr(2)], Named(tl.constexpr(3), 4)))  # type: ignore[arg-type]
    assert found == (1, [2], Named(3, 4)) and isinstance(found[2], Named)


# --- stubs and tensors ----------------------------------------------------------------------------


def test_stubs_need_a_kernel() -> None:
    with pytest.raises(errors.InvalidOperation, match="use 'arange' outside of a kernel"):
        tl.arange(0, 4)
    with pytest.raises(errors.InvalidOperation, match="operator 'add'"):
        _ = value(ir.i32) + 1
    with pytest.raises(errors.InvalidOperation, match="'helper' outside of a kernel"):
        helper(1)


@tl.device_function
def helper(x: Any) -> Any:
    """Help."""
    return x


def test_sizes_work_on_the_host() -> None:
    assert tl.cdiv(10, 4) == 3 and tl.cdiv(8, 4) == 2
    assert tl.ceil_div is tilewright.ceil_div is tl.cdiv


def test_stubs_ask_the_active_dispatcher(recorder: Recorder) -> None:
    assert tl.load("p", mask="m") == "called"  # type: ignore[arg-type]
    assert recorder.asked == [("load", ("p",), {"mask": "m"})]
    assert tl.is_builtin(tl.load) and not tl.is_builtin(helper) and not tl.is_builtin([])
    assert helper(1, y=2) == "ran" and recorder.asked[-1] == (helper, (1,), {"y": 2})
    assert helper.__doc__ == "Help." and helper.__name__ == "helper"


def test_every_stub_is_documented() -> None:
    for stub, name in tl.STUBS.items():
        assert stub.__doc__ and len(stub.__doc__) > 8, name


def test_methods_are_the_stubs(recorder: Recorder) -> None:
    x = value(ir.TileType((4,), ir.f32))
    x.sum(0, keep_dims=True)
    assert recorder.asked[-1] == ("sum", (x, 0), {"keep_dims": True})
    _ = x.T
    assert recorder.asked[-1] == ("trans", (x,), {})


def test_facts_of_tensors() -> None:
    x = value(ir.TileType((4, 2), ir.PointerType(ir.f32)))
    assert x.shape == (4, 2) and isinstance(x.shape[0], tl.constexpr)
    assert x.dtype.element_ty == tl.float32 and x.numel == 8  # type: ignore[attr-defined]
    assert x.type == tl.block_type(tl.pointer_type(tl.float32), [4, 2])
    assert value(ir.i32).shape == () and value(ir.i32).numel == 1


def test_python_operators_and_conversions_of_tensors(recorder: Recorder) -> None:
    x = value(ir.i32)
    results = [x - 1, 1 - x, x // 2, x % 2, x & 1, x | 1, x ^ 1, x << 1, x >> 1, -x, ~x, x[None]]
    assert results == [
        "sub", "sub", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift", "neg", "invert",
        "getitem",
    ]  # fmt: skip
    assert recorder.asked[1] == ("sub", 1, x)
    assert bool(x) is True and int(x) == 3 and float(x) == 2.5 and list(range(x)) == [0, 1, 2, 3]
    assert f"{x:.1f}" == "2.5"
    assert (x == 1) == "eq" and (x != 1) == "ne" and (x < 1) == "lt" and (x >= 1) == "ge"


def test_what_tensors_refuse() -> None:
    x = value(ir.TileType((4,), ir.i32))
    with pytest.raises(errors.UnknownAttribute, match="did you mean 'cumsum'"):
        _ = x.cumsums
    with pytest.raises(errors.UnsupportedLanguageConstruct, match="assigning to elements"):
        x[0] = 1
    with pytest.raises(errors.UnsupportedLanguageConstruct, match="iterating over a tensor"):
        list(x)
    assert not hasattr(x, "nothing")


def test_tuples() -> None:
    items = tl.tuple([1, 2]) + (3,)
    assert isinstance(items, tl.tuple) and items == (1, 2, 3) and items.values == [1, 2, 3]
    assert isinstance(items[:2], tl.tuple) and items[tl.constexpr(0)] == 1
    assert (0,) + tl.tuple([1]) == (0, 1) and tl.tuple([1]) * 2 == (1, 1)


# --- loops ----------------------------------------------------------------------------------------


def test_range_keeps_its_hints() -> None:
    loop = tl.range(8, num_stages=tl.constexpr(3), flatten=True)
    assert (loop.start, loop.end, loop.step, loop.num_stages, loop.flatten) == (0, 8, 1, 3, True)
    assert tl.range(1, 9, 2).step == 2


def test_static_range_counts_at_compile_time() -> None:
    assert [i.value for i in tl.static_range(tl.constexpr(3))] == [0, 1, 2]
    assert [i.value for i in tl.static_range(6, 0, -2)] == [6, 4, 2]
    with pytest.raises(errors.NotConstexpr, match="'end' of static_range"):
        tl.static_range(value(ir.i32))  # type: ignore[arg-type]


def test_range_asks_for_its_items(recorder: Recorder) -> None:
    tl.ACTIVE.get()
    loop = tl.range(4)
    with pytest.raises(TypeError):
        iter(loop)
    assert recorder.asked == [("range", loop)]
