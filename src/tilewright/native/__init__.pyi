from .native_program import OBJECT_LAYOUT, NativeProgram, constant
from .python_callable import METH_FASTCALL, METH_KEYWORDS, builtin_function

__all__ = [
    "METH_FASTCALL",
    "METH_KEYWORDS",
    "OBJECT_LAYOUT",
    "NativeProgram",
    "builtin_function",
    "constant",
]
