"""The runtime interface of a Triton-C kernel: parameters, variants, launches, interpreter."""

from __future__ import annotations

import hashlib
import keyword
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

from tilewright.backends import backend_named
from tilewright.c.c_program import CProgram
from tilewright.c.c_source import CSource
from tilewright.c.declared_arguments import declared_as
from tilewright.c.macro_values import is_tuned, text_of, texts_of
from tilewright.compiler import KernelSource, frontend_options, options_of
from tilewright.frontend.c import KernelParameter, kernel_named, parameters_of
from tilewright.frontend.python import ArgSpec, Dependencies, KernelSignature
from tilewright.ir.types import DType
from tilewright.language import constexpr
from tilewright.runtime import JITFunction, kernel_parameters
from tilewright.support import errors, grid_for, import_late, user_boundary


class CFunction(JITFunction):
    """A kernel of a program; its macros are keyword-only constexpr parameters.

    defines: the values of the macros; each launch chooses from those given as lists.
    """

    def __init__(
        self,
        program: CProgram,
        name: str | None,
        defines: Mapping[str, object],
        interpret: bool | None,
    ) -> None:
        # The first values of lists: all values must give the same parameters, see `source`.
        parsed = program.parsed(texts_of(defines))
        kernel = kernel_named(parsed, name)
        self.program = program
        self.defines = dict(defines)
        self.parameters = parameters_of(parsed, kernel)
        signature = _python_function(kernel.name, self.parameters, defines)
        declared = {parameter.name: declared_as(parameter) for parameter in self.parameters}
        params = [replace(p, declared=declared.get(p.name)) for p in kernel_parameters(signature)]
        super().__init__(signature, interpret=interpret, params=params, compilable=self)
        # Pickled as its arguments: parsed trees and launchers belong to one process.
        self._program_and_name = (program, name, defines, interpret)

    def __reduce__(self) -> tuple[Any, ...]:
        return CFunction, self._program_and_name

    @property
    def integers(self) -> list[str]:
        """Names of the parameters that are integers."""
        return [p.name for p in self.parameters if isinstance(p.type, DType) and p.type.is_integer]

    @property
    def src(self) -> str:
        """The source text."""
        return self.program.text

    def find_dependencies(self) -> Dependencies:
        """The text, its headers and the macros with one value: all that the kernel depends on.

        Macros with lists are left out, so that timings of configurations stay valid when a list
        grows."""
        texts = texts_of(self.defines)
        # Sorted: the order in which macros are given does not matter to the kernel.
        fixed = sorted(item for item in texts.items() if not is_tuned(self.defines[item[0]]))
        text = f"{self.program.digest(texts)} {self.__name__} {fixed}"
        return Dependencies(hashlib.sha256(text.encode()).hexdigest(), ())

    def source(self, signature: KernelSignature, digest: str) -> KernelSource:
        """The kernel for the values of its macros and the types of its arguments.

        Errors: InvalidOption if the macros change the parameters.
        """
        # Macros are constexprs of the signature; the rest of it are the kernel's parameters.
        chosen = {arg.name: arg.value for arg in signature.args if arg.name in self.defines}
        texts = {name: text_of(name, value) for name, value in chosen.items()}
        parsed = self.program.parsed(texts)
        parameters = parameters_of(parsed, kernel_named(parsed, self.__name__))
        if parameters != self.parameters:
            expected = "such that all values give the kernel the same parameters"
            raise errors.InvalidOption(
                "defines", expected, _difference(self.parameters, parameters)
            )
        rest = tuple(arg for arg in signature.args if arg.name not in self.defines)
        return CSource.of(self.program, self.__name__, texts, KernelSignature(rest))

    def _interpret(self, grid: object, /, *args: object, **kwargs: object) -> None:
        """Launch in the interpreter, which runs the front end's tile IR."""
        with user_boundary:
            call = self.bind(*args, **kwargs)
            backend = backend_named("cpu")
            options = options_of(backend, call.options)
            source = self.source(self._unspecialized(call.named), "")
            function = source.lower(frontend_options(backend, options)).kernel
            extents = grid_for(grid, call.named)
            # Loaded late: its reference rules need NumPy, which compiled kernels do not.
            interp = import_late("tilewright.interp")
            assert len(call.keys) == len(call.args)  # checking the arguments computes the keys
            arrays_and_numbers = [call.named[parameter.name] for parameter in self.parameters]
            interp.run_function(function, arrays_and_numbers, extents)

    def _unspecialized(self, named: Mapping[str, object]) -> KernelSignature:
        """A signature without facts, which the interpreter does not need."""
        values = [ArgSpec(p.name, "value", p.type) for p in self.parameters]
        macros = [ArgSpec(name, "constexpr", value=named[name]) for name in self.defines]
        return KernelSignature((*values, *macros))


def _difference(first: tuple[KernelParameter, ...], second: tuple[KernelParameter, ...]) -> str:
    changed = [b.name for a, b in zip(first, second, strict=False) if a != b]
    if changed:
        return f"another type for '{changed[0]}'"
    return f"{len(first)} and {len(second)} parameters"


def _python_function(
    name: str, parameters: tuple[KernelParameter, ...], defines: Mapping[str, object]
) -> Callable[..., Any]:
    """A function with the kernel's parameters, then one keyword for each macro."""
    names = [parameter.name for parameter in parameters]
    for word in names:
        if keyword.iskeyword(word) or word in defines:
            reason = "is a macro too" if word in defines else "is a keyword of Python"
            raise errors.InvalidOption("parameters", "other names", f"'{word}', which {reason}")
    # A C name may be a keyword of Python, which only the generated `def` cannot use.
    function = name if not keyword.iskeyword(name) else "kernel"
    macros = [
        f"{macro}: constexpr" + ("" if is_tuned(value) else f" = defines[{macro!r}]")
        for macro, value in defines.items()
    ]
    listed = ", ".join([*names, *(["*", *macros] if macros else [])])
    namespace: dict[str, Any] = {"constexpr": constexpr, "defines": defines}
    # exec is the only way to a function with a signature made at run time; launches inspect it.
    exec(f"def {function}({listed}): ...", namespace)  # noqa: S102 -- identifiers only
    made = namespace[function]
    made.__name__ = made.__qualname__ = name
    made.__module__ = __name__
    made.__doc__ = f"The Triton-C kernel {name}."
    return cast("Callable[..., Any]", made)
