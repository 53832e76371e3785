"""The meaning of every language function and operator, for all front ends and the interpreter."""

from tilewright.frontend.semantics import (
    atomics,
    block_pointers,
    creation,
    dot,
    extrema,
    hints,
    libdevice,
    math_functions,
    memory,
    random,
    reductions,
    selection,
    shape,
    sizes,
    softmax,
)
from tilewright.frontend.semantics.arithmetic import (
    as_condition,
    binary,
    compare,
    logical,
    unary,
)
from tilewright.frontend.semantics.casting import cast_to
from tilewright.frontend.semantics.context import Context, FrontendOptions, FunctionCaller
from tilewright.frontend.semantics.literals import constant, describe, materialize
from tilewright.frontend.semantics.registry import REGISTRY, call, call_builtin, meaning
from tilewright.frontend.semantics.shape import getitem
from tilewright.frontend.semantics.values import getattr_, truth, type_in_words, unify

__all__ = [
    "REGISTRY",
    "Context",
    "FrontendOptions",
    "FunctionCaller",
    "as_condition",
    "binary",
    "call",
    "call_builtin",
    "cast_to",
    "compare",
    "constant",
    "creation",
    "atomics",
    "block_pointers",
    "dot",
    "extrema",
    "hints",
    "libdevice",
    "math_functions",
    "random",
    "reductions",
    "sizes",
    "softmax",
    "describe",
    "getattr_",
    "getitem",
    "logical",
    "materialize",
    "meaning",
    "memory",
    "selection",
    "shape",
    "truth",
    "type_in_words",
    "unary",
    "unify",
]
