from .native_c_program import OBJECT_LAYOUT, CProgram, constant
from .native_program import NativeProgram
from .python_callable import METH_FASTCALL, METH_KEYWORDS, builtin_function

__all__ = [
    "METH_FASTCALL",
    "METH_KEYWORDS",
    "OBJECT_LAYOUT",
    "CProgram",
    "NativeProgram",
    "builtin_function",
    "constant",
]
