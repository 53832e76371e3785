"""Programs in C, loaded as LLVM IR, and how Python code calls them.

The C sources are beside the modules that load them, with the LLVM IR that is made of them.
`NativeProgram` puts this IR together with what Python decides (instructions of the target, numbers
of the system); `builtin_function` makes a function of a program callable from Python. The headers
here are those that the sources share. May import `llvm`.
"""

from tilewright.support.lazy_facade import load_at_first_use

load_at_first_use(globals())
