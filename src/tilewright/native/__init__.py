"""Machine code written by hand: LLVM IR in `.ll` files, and how Python code calls it.

The `.ll` files stand beside the module that loads them. `NativeProgram` puts them together with
what Python decides (the layout of structures, constants of the platform); `builtin_function` makes
a function of a program callable from Python. May import `llvm`.
"""

from tilewright.support.lazy_facade import load_at_first_use

load_at_first_use(globals())
