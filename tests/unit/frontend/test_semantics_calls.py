"""Calls, attributes, conditions, joins, promises and messages."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import pytest

from tests.unit.frontend.contexts import BuildBench, EagerBench, data
from tilewright import language as tl
from tilewright.frontend.semantics import (
    call,
    call_builtin,
    getattr_,
    implementation_of,
    implements,
    truth,
)
from tilewright.ir import types as ir
from tilewright.ops import HintOp, PrintOp
from tilewright.support import SourceLoc, errors

Pair = namedtuple("Pair", "first second")


def test_every_stub_has_an_implementation() -> None:
    missing = [name for stub, name in list(tl.STUBS.items()) if implementation_of(stub) is None]
    assert missing == []


def test_an_implementation_must_have_the_parameters_of_its_stub() -> None:
    @tl.builtin
    def stub(x: int, axis: int = 0) -> None:
        """Nothing."""
        ...

    with pytest.raises(AssertionError, match="stub"):

        @implements(stub)
        def wrong_name(ctx: object, x: int, dim: int = 0) -> None: ...

    with pytest.raises(AssertionError, match="stub"):

        @implements(stub)
        def wrong_default(ctx: object, x: int, axis: int = 1) -> None: ...

    del tl.STUBS[stub]


@pytest.mark.parametrize(
    ("args", "kwargs", "error", "text"),
    [
        ((1, 2, 3), {}, errors.ArgumentCount, r"arange\(\) takes 1 to 2 arguments, found 3"),
        ((), {}, errors.MissingArgument, "missing required argument 'start'"),
        ((), {"end": 4}, errors.MissingArgument, "'start'"),
        ((4,), {"ende": 4}, errors.UnknownArgument, "did you mean 'end'"),
        ((4,), {"start": 4}, errors.RepeatedArgument, "multiple values for 'start'"),
    ],
)
def test_wrong_calls(
    args: tuple[Any, ...], kwargs: dict[str, Any], error: type[Exception], text: str
) -> None:
    ctx = BuildBench().ctx
    ctx.emitter.loc = SourceLoc("k.py", 7)
    with pytest.raises(error, match=text) as caught:
        call_builtin(ctx, tl.arange, args, kwargs)
    assert getattr(caught.value, "loc") == SourceLoc("k.py", 7)  # noqa: B009


def test_whatever_a_kernel_may_call() -> None:
    bench = EagerBench()
    x = bench.tile([1, 2], ir.i32)
    assert int(data(call(bench.ctx, x.sum, (0,), {}))) == 3
    assert call(bench.ctx, tl.next_power_of_2, (tl.constexpr(5),), {}).value == 8
    assert int(data(call(bench.ctx, twice, (bench.tile(4, ir.i32),), {}))) == 8
    with pytest.raises(errors.InvalidOperation, match="no function of the language"):
        call(bench.ctx, print, (), {})


@tl.device_function
def twice(x: Any) -> Any:
    return x + x


def test_attributes() -> None:
    bench = BuildBench()
    x = bench.tile(ir.f16, 2, 4)
    assert getattr_(bench.ctx, x, "shape") == (2, 4)
    assert getattr_(bench.ctx, x, "dtype") == tl.float16
    assert getattr_(bench.ctx, x, "numel").value == 8
    assert getattr_(bench.ctx, x, "T").shape == (4, 2)
    assert getattr_(bench.ctx, tl.constexpr(tl.float16), "primitive_bitwidth") == 16
    assert getattr_(bench.ctx, tl.constexpr(3), "value") == 3
    assert getattr_(bench.ctx, Pair(1, 2), "second") == 2
    with pytest.raises(errors.UnknownAttribute, match="did you mean 'shape'"):
        getattr_(bench.ctx, x, "shap")
    with pytest.raises(errors.UnknownAttribute, match="program_id"):
        getattr_(bench.ctx, tl, "program_idx")


def test_truth_of_scalars() -> None:
    bench = EagerBench()
    for value, element in ((3, ir.i32), (0.5, ir.f16), (True, ir.i1)):
        assert bool(getattr(truth(bench.ctx, bench.tile(value, element)), "data"))  # noqa: B009
    assert not getattr(truth(bench.ctx, bench.tile([0], ir.i32)), "data")  # noqa: B009
    build = BuildBench()
    assert truth(build.ctx, build.arg(ir.PointerType(ir.f32))).type is ir.i1
    assert truth(build.ctx, 1).type is ir.i1
    with pytest.raises(errors.InvalidOperation, match="one branch") as caught:
        truth(build.ctx, build.tile(ir.i1, 4))
    assert "tl.where" in str(caught.value.hint)


# --- promises and messages ------------------------------------------------------------------------


def test_promises() -> None:
    bench = BuildBench()
    x = bench.tile(ir.i32, 4, 8)
    for stub, field in (
        (tl.multiple_of, "divisibility"),
        (tl.max_contiguous, "contiguity"),
        (tl.max_constancy, "constancy"),
    ):
        op = bench.call(stub, x, (tl.constexpr(1), 8)).handle.op
        assert isinstance(op, HintOp) and op.attrs[field] == (1, 8)
    scalar = bench.call(tl.multiple_of, bench.arg(ir.i32), 16).handle.op
    assert isinstance(scalar, HintOp) and scalar.divisibility == (16,)
    assert bench.call(tl.multiple_of, 32, 16).value == 32
    with pytest.raises(errors.InvalidValue, match="each of 2 dimensions"):
        bench.call(tl.multiple_of, x, 16)
    with pytest.raises(errors.InvalidValue, match="positive"):
        bench.call(tl.max_constancy, x, (0, 1))


def test_assume() -> None:
    bench = BuildBench()
    bench.call(tl.assume, bench.arg(ir.i1))
    bench.call(tl.assume, True)
    assert bench.opcodes == ["cf.assume"]
    with pytest.raises(errors.InvalidValue, match="can hold"):
        bench.call(tl.assume, False)


def test_static_print_and_assert(capsys: pytest.CaptureFixture[str]) -> None:
    bench = BuildBench()
    bench.call(tl.static_print, "x", bench.tile(ir.f32, 4), tl.constexpr(3), sep="|", end="!")
    assert capsys.readouterr().out == "x|<[4], fp32>|3!"
    bench.call(tl.static_assert, True, "fine")
    with pytest.raises(errors.CompileTimeAssertionFailure, match="BLOCK too small"):
        bench.call(tl.static_assert, tl.constexpr(False), "BLOCK too small")
    with pytest.raises(errors.NotConstexpr):
        bench.call(tl.static_assert, bench.arg(ir.i1))


def test_device_print_and_assert() -> None:
    bench = BuildBench(debug=True)
    bench.call(tl.device_print, "value", bench.arg(ir.i32), 1.5, hex=True)
    op = bench.block.last
    assert isinstance(op, PrintOp) and op.prefix == "value" and op.hex and len(op.args) == 2
    with pytest.raises(errors.InvalidValue, match="ASCII"):
        bench.call(tl.device_print, "größe")
    bench.call(tl.device_assert, bench.tile(ir.i32, 4), "nonzero", mask=bench.arg(ir.i1))
    assert bench.opcodes[-1] == "cf.assert"
    quiet = BuildBench()
    quiet.call(tl.device_assert, quiet.arg(ir.i1), "never checked")
    assert quiet.opcodes == []


def test_barrier() -> None:
    bench = BuildBench()
    bench.call(tl.debug_barrier)
    assert bench.opcodes == ["mem.barrier"]
