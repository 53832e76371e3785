"""How often a loop runs, for all bounds that its index can have."""

from itertools import product

import numpy as np
import pytest

from tilewright.interp import run_function
from tilewright.ir import Builder, parse_function
from tilewright.ir.types import dtype_named, i64
from tilewright.ops import CastOp, ForOp, StoreOp
from tilewright.transforms import trip_count

_LOOP = """func @f(%out: ptr<i64>, %low: TYPE, %high: TYPE, %by: TYPE) {
  %step = arith.constant {value = STEP} : TYPE
  cf.for %low, %high, NAME (%i: TYPE) {
    cf.yield
  }
  cf.return
}"""
BOUNDS = {
    "i32": (-(2**31), -(2**31) + 1, -5, 0, 7, 2**30, 2**31 - 2, 2**31 - 1),
    "u32": (0, 1, 2**31, 2**32 - 1),
    "i8": (-128, -1, 0, 127),
}


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("type_, step", list(product(BOUNDS, (1, 3, 100))))
def test_numbers_of_iterations(type_: str, step: int, known: bool) -> None:
    text = _LOOP.replace("TYPE", type_).replace("STEP", str(step))
    function = parse_function(text.replace("NAME", "%step" if known else "%by"))
    loop = next(op for op in function.walk() if isinstance(op, ForOp))
    builder = Builder.at(loop)
    trips = trip_count(builder, loop)
    assert trips.type is dtype_named(f"u{type_[1:]}")
    builder.emit(StoreOp(function.args[0], builder.value(CastOp(trips, i64))))
    loop.parent.detach(loop)  # pyright: ignore[reportOptionalMemberAccess] -- it may run for long
    for low, high in product(BOUNDS[type_], repeat=2):
        out = np.zeros(1, np.int64)
        run_function(function, [out, low, high, step], (1,))
        assert out[0] == len(range(low, high, step)), (low, high, step)
