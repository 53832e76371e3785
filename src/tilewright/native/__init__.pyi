from .native_program import NativeProgram
from .python_callable import METH_FASTCALL, METH_KEYWORDS, builtin_function

__all__ = ["METH_FASTCALL", "METH_KEYWORDS", "NativeProgram", "builtin_function"]
