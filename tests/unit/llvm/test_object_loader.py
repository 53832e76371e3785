"""Loading object files: addresses, caches, unloading, and objects that cannot be loaded."""

import ctypes
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.llvm import LlvmError, TargetSpec, compile_ir, host_cpu, host_target, load_object

ADD = "define i64 @add(i64 %a, i64 %b) {\n %c = add i64 %a, %b\n ret i64 %c\n}\n"
LIBRARY_CALL = """
declare double @fmod(double, double)
define double @remainder(double %a, double %b) {
  %r = call double @fmod(double %a, double %b)
  ret double %r
}
"""
MISSING = """
declare void @tilewright_no_such_function()
define void @calls_missing() {
  call void @tilewright_no_such_function()
  ret void
}
"""
add_type = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


def compiled(text: str) -> bytes:
    return compile_ir(text, host_target())


def test_loaded_function_runs() -> None:
    loaded = load_object(compiled(ADD), ["add"])
    assert add_type(loaded["add"])(40, 2) == 42


def test_the_same_object_loads_twice() -> None:
    obj = compiled(ADD)
    first, second = load_object(obj, ["add"]), load_object(obj, ["add"])
    assert first["add"] != second["add"]
    first.close()
    assert add_type(second["add"])(1, 2) == 3


def test_many_loads_and_unloads() -> None:
    obj = compiled(ADD)
    for number in range(200):
        loaded = load_object(obj, ["add"])
        assert add_type(loaded["add"])(number, 1) == number + 1


def test_closed_object_has_no_addresses() -> None:
    loaded = load_object(compiled(ADD), ["add"])
    loaded.close()
    with pytest.raises(KeyError):
        loaded["add"]


def test_c_library_is_visible() -> None:
    loaded = load_object(compiled(LIBRARY_CALL), ["remainder"])
    function = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_double)
    assert function(loaded["remainder"])(7.5, 2.0) == 1.5


def test_undefined_symbol_is_named() -> None:
    with pytest.raises(LlvmError, match="tilewright_no_such_function"):
        load_object(compiled(MISSING), ["calls_missing"])


def test_unknown_export() -> None:
    with pytest.raises(LlvmError, match="subtract"):
        load_object(compiled(ADD), ["add", "subtract"])


@pytest.mark.parametrize("keep", [0, 1, 16, 64, 200, -1, -64])
def test_damaged_object(keep: int) -> None:
    with pytest.raises(LlvmError):
        load_object(compiled(ADD)[:keep], ["add"])


def test_object_from_another_process(tmp_path: Path) -> None:
    path = tmp_path / "add.o"
    script = (
        "import sys; from pathlib import Path\n"
        "from tilewright.llvm import compile_ir, host_target\n"
        f"Path(sys.argv[1]).write_bytes(compile_ir({ADD!r}, host_target()))\n"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)
    loaded = load_object(path.read_bytes(), ["add"])
    assert add_type(loaded["add"])(1, 2) == 3


def test_object_that_outlives_its_module_at_exit() -> None:
    """Python clears modules in reverse order of import, this one before `textwrap`."""
    script = (
        "import sys, textwrap\n"
        "from tilewright.llvm import compile_ir, host_target, load_object\n"
        f"textwrap.kept = load_object(compile_ir({ADD!r}, host_target()), ['add'])\n"
        "sys.kept = textwrap, sys.modules[load_object.__module__]\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert ended.stderr == b""


# ------------------------------------------------------------------------------ conversions

Convert = Callable[[np.ndarray], np.ndarray]


@cache
def converter(source: str, wide: npt.DTypeLike, target: str, narrow: npt.DTypeLike) -> Convert:
    """A conversion compiled for a CPU that has only SSE2: it must call the library functions."""
    operation = "fpext" if source == "half" else "fptrunc"
    text = f"""
    define void @convert(ptr %from, ptr %to) {{
      %x = load {source}, ptr %from
      %y = {operation} {source} %x to {target}
      store {target} %y, ptr %to
      ret void
    }}"""
    plain = TargetSpec(host_target().triple, "x86-64")
    loaded = load_object(compile_ir(text, plain), ["convert"])
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(loaded["convert"])

    def convert(values: np.ndarray) -> np.ndarray:
        assert loaded.addresses
        values = np.ascontiguousarray(values, dtype=wide)
        result = np.empty(values.shape, dtype=narrow)
        for index in range(values.size):
            function(
                values.ctypes.data + index * values.itemsize,
                result.ctypes.data + index * result.itemsize,
            )
        return result

    return convert


CASES = {
    "f64 to f16": ("double", np.float64, "half", np.float16),
    "f32 to f16": ("float", np.float32, "half", np.float16),
    "f32 to bf16": ("float", np.float32, "bfloat", ml_dtypes.bfloat16),
}
EDGES = [0.0, -0.0, 1.0, 65504.0, 65519.99, 65520.0, 1e30, 2.0**-14, 2.0**-24, 2.0**-25, 3e-8]
EDGES += [2.0**-126, 2.0**-133, 2.0**-134, 1e-45, 3.3895314e38, 3.4e38, float("inf"), 1.00390625]

needs_x86 = pytest.mark.skipif(not host_cpu().is_x86, reason="x86 calls library functions")


@needs_x86
@pytest.mark.parametrize("case", CASES)
@given(data=st.data())
def test_narrowing_rounds_to_nearest_even(case: str, data: st.DataObject) -> None:
    source, wide, target, narrow = CASES[case]
    width = np.dtype(wide).itemsize * 8
    drawn = data.draw(st.lists(st.floats(width=width, allow_nan=False), max_size=20))  # type: ignore[arg-type]
    values = np.array([*EDGES, *(-edge for edge in EDGES), *drawn], dtype=wide)
    with np.errstate(over="ignore"):
        expected = values.astype(narrow)
    actual = converter(source, wide, target, narrow)(values)
    np.testing.assert_array_equal(actual.view(np.uint16), expected.view(np.uint16))


@needs_x86
def test_f64_to_bf16_rounds_once() -> None:
    # Through f32 the first value would round to a tie and then down to 1.
    values = np.array([1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-8, 1 + 3 * 2.0**-8, 2.0**-133, 1e300])
    actual = converter("double", np.float64, "bfloat", ml_dtypes.bfloat16)(values)
    expected = [1 + 2.0**-7, 1.0, 1 + 2.0**-6, 2.0**-133, np.inf]
    assert actual.astype(np.float64).tolist() == expected


@needs_x86
@pytest.mark.parametrize("case", CASES)
def test_narrowing_keeps_nan(case: str) -> None:
    source, wide, target, narrow = CASES[case]
    nan = converter(source, wide, target, narrow)(np.array([np.nan, -np.nan]))
    assert np.isnan(nan.astype(np.float32)).all()


@needs_x86
def test_every_half_widens_exactly() -> None:
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    actual = converter("half", np.float16, "float", np.float32)(halves)
    expected = halves.astype(np.float32)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(
        actual[numbers].view(np.uint32), expected[numbers].view(np.uint32)
    )
    assert np.isnan(actual[~numbers]).all()
