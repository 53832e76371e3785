"""Hand-written LLVM IR is sound, all of it, and sees the structures that Python sees."""

import ctypes
import re
from pathlib import Path

import pytest
from llvmlite import binding

import tilewright
from tilewright.native import METH_FASTCALL, NativeProgram, builtin_function
from tilewright.runtime.launch.native_dispatch_structures import DISPATCH

SOURCES = Path(tilewright.__file__).parent
PROGRAMS = {
    "dispatch": DISPATCH,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_llvm_parses_and_verifies_each_program(name: str) -> None:
    module = binding.parse_assembly(PROGRAMS[name].text(), binding.create_context())
    module.verify()
    assert {function.name for function in module.functions} >= set(PROGRAMS[name].exports)


def test_each_file_of_llvm_ir_belongs_to_a_program() -> None:
    files = [path for program in PROGRAMS.values() for path in program.files]
    assert set(SOURCES.rglob("native_dispatch*.ll")) == set(files)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_comment_stands_above_each_function_that_is_not_short(name: str) -> None:
    for path in PROGRAMS[name].files:
        for above, function in re.findall(
            r"([^\n]*)\n(define .*?^\})", path.read_text("utf-8"), re.MULTILINE | re.DOTALL
        ):
            assert above.startswith(";") or function.count("\n") < 16, (path.name, function[:80])


class Inner(ctypes.Structure):
    _fields_ = (("byte", ctypes.c_int8), ("word", ctypes.c_int64))


class Outer(ctypes.Structure):
    _fields_ = (
        ("half", ctypes.c_int16),
        ("inner", Inner * 3),
        ("text", ctypes.c_char_p),
        ("odd", ctypes.c_char * 3),
        ("last", ctypes.c_int32),
    )


def program(tmp_path: Path, text: str) -> NativeProgram:
    path = tmp_path / "program.ll"
    path.write_text(text, "utf-8")
    return NativeProgram([path], ["f"], [Inner, Outer], {"ANSWER": 42})


@pytest.mark.parametrize("name", ["half", "inner", "text", "odd", "last"])
def test_fields_lie_where_ctypes_has_them(tmp_path: Path, name: str) -> None:
    text = f"define ptr @f(ptr %x) {{\n  %at = call ptr @Outer.at_{name}(ptr %x)\n  ret ptr %at\n}}"
    code = program(tmp_path, text).load()
    address = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64)(code["f"])
    assert address(1 << 20) - (1 << 20) == getattr(Outer, name).offset


def test_accessors_read_and_write_and_constants_are_numbers(tmp_path: Path) -> None:
    text = """
define i64 @f(ptr %inner) {
  %before = call i64 @Inner.word(ptr %inner)
  %answer = call i64 @ANSWER()
  call void @Inner.set_word(ptr %inner, i64 %answer)
  ret i64 %before
}"""
    code = program(tmp_path, text).load()
    inner = Inner(3, 7)
    assert (
        ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(code["f"])(ctypes.addressof(inner)) == 7
    )
    assert (inner.byte, inner.word) == (3, 42)


def test_machine_code_is_a_builtin_function(tmp_path: Path) -> None:
    text = """
declare ptr @PyLong_FromLongLong(i64)

define ptr @f(ptr %self, ptr %args, i64 %count) {
  %result = call ptr @PyLong_FromLongLong(i64 %count)
  ret ptr %result
}"""
    code = program(tmp_path, text).load()
    function = builtin_function("count", code["f"], METH_FASTCALL, 1 << 40, code)
    assert function("a", "b", "c") == 3
    assert function.__self__ == 1 << 40
    assert function.__name__ == "count"
