"""The source class of `tilewright.compile` for kernels in Triton-C."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tilewright.c.c_program import CProgram
from tilewright.c.macro_values import Defines, definitions, texts_of
from tilewright.compiler import KernelSource, signature_text
from tilewright.frontend import FrontendOptions
from tilewright.frontend.c import kernel_named, lower_kernel, parameters_of
from tilewright.frontend.python import ArgSpec, KernelSignature
from tilewright.ir import Module


class CSource(KernelSource):
    """A kernel of a Triton-C source, for given values of its macros.

    source: text or path; name: of the kernel, if there are several; facts: parameter -> what holds
    for every value passed, in addition to the declaration: {"aligned": 16}, {"multiple_of": 16}.
    Errors: CompilationErrors.
    """

    suffix = ".c"
    comment = "//"

    def __init__(
        self,
        source: str | Path,
        defines: Defines | None = None,
        name: str | None = None,
        facts: Mapping[str, Mapping[str, int]] | None = None,
    ) -> None:
        program, texts = CProgram(source), texts_of(definitions(defines))
        parsed = program.parsed(texts)
        kernel = kernel_named(parsed, name)
        given = facts or {}
        specs = tuple(
            ArgSpec(p.name, "value", p.type, facts=dict(given.get(p.name, {})))
            for p in parameters_of(parsed, kernel)
        )
        self._init(program, kernel.name, texts, KernelSignature(specs))

    @classmethod
    def of(
        cls, program: CProgram, name: str, defines: Mapping[str, str], signature: KernelSignature
    ) -> CSource:
        """A kernel with the front end's description of its arguments."""
        # Without __init__, which would read and parse the source again.
        source = cls.__new__(cls)
        source._init(program, name, defines, signature)
        return source

    def _init(
        self, program: CProgram, name: str, defines: Mapping[str, str], signature: KernelSignature
    ) -> None:
        self.program = program
        self.name = name
        self.location = program.name
        self.defines = dict(defines)
        self.arguments = signature

    @property
    def constant_texts(self) -> dict[str, str]:
        """The macros by name."""
        return self.defines

    def lower(self, options: FrontendOptions) -> Module:
        """The frontend's tile IR. Raises CompilationErrors."""
        parsed = self.program.parsed(self.defines)
        return lower_kernel(parsed, kernel_named(parsed, self.name), self.arguments, options)

    @property
    def text(self) -> str:
        """The source text with its macros."""
        return self.program.text

    def key(self) -> str:
        """The part of the cache key that is not options or target."""
        digest = self.program.digest(self.defines)
        defines = sorted(self.defines.items())
        return f"triton-c {digest} {self.name} {defines} {signature_text(self.arguments)}"
