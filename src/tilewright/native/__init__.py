"""Programs in C, loaded as LLVM IR, and how Python code calls them.

The C sources and the LLVM IR generated from them are in the folders of the modules that load them.
`NativeProgram` adds the definitions that depend on the target or the system; `builtin_function`
makes a function of a program callable from Python. The headers in this folder are shared by the
sources. May import `llvm`.
"""

from tilewright.support.lazy_facade import load_at_first_use

load_at_first_use(globals())
