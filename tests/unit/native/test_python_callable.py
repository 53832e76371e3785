"""Machine code as a builtin function of Python."""

from tilewright.llvm import compile_ir, host_target, load_object
from tilewright.native import METH_FASTCALL, builtin_function


def test_machine_code_is_a_builtin_function() -> None:
    text = """
declare ptr @PyLong_FromLongLong(i64)

define ptr @f(ptr %self, ptr %args, i64 %count) {
  %result = call ptr @PyLong_FromLongLong(i64 %count)
  ret ptr %result
}"""
    code = load_object(compile_ir(text, host_target()), ["f"])
    function = builtin_function("count", code["f"], METH_FASTCALL, 1 << 40, code)
    assert function("a", "b", "c") == 3
    assert function.__self__ == 1 << 40
    assert function.__name__ == "count"
