"""The hooks before and after a variant is compiled, with Triton's arguments."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from tilewright.backends import Backend, CommonOptions
from tilewright.compiler import KernelSource, specialization_of
from tilewright.support.data_class import dataclass

__all__ = ["CompileSkipped", "JitFunctionInfo", "Variation"]

Hook = Callable[..., Any]


class CompileSkipped(Exception):
    """The hook before compiling has said that it is not to be done."""


@dataclass(frozen=True, slots=True)
class JitFunctionInfo:
    """The kernel that a hook is called for."""

    module: str
    name: str
    jit_function: Any


@dataclass(frozen=True, slots=True)
class Variation:
    """A variant of `kernel` that is to be compiled; is_warmup: without a launch."""

    kernel: Any
    source: KernelSource
    backend: Backend
    options: CommonOptions
    is_warmup: bool

    def call(self, hook: Hook | None) -> bool:
        """Call a hook, if there is one; whether it has returned something true."""
        if hook is None:
            return False
        compiled = self._described()
        function = self.kernel.fn
        info = JitFunctionInfo(function.__module__, function.__qualname__, self.kernel)
        return bool(
            hook(
                key=compiled["key"],
                repr=self._text(compiled["signature"]),
                fn=info,
                compile=compiled,
                is_manual_warmup=self.is_warmup,
                already_compiled=False,
            )
        )

    def _described(self) -> dict[str, Any]:
        constants, signature = specialization_of(self.source.arguments)
        facts = [
            {(i,): [["tt.divisibility", 16]]}
            for i, spec in enumerate(self.source.arguments.args)
            if any(amount % 16 == 0 for amount in spec.facts.values())
        ]
        options = self.options
        configs: dict[Any, Any] = {place: fact for found in facts for place, fact in found.items()}
        return {
            "key": f"{self.source.key()} {options.meaningful()}",
            "signature": signature,
            "device": 0,
            "constants": constants,
            "num_warps": options.num_warps,
            "num_ctas": options.num_ctas,
            "num_stages": options.num_stages,
            "enable_fp_fusion": options.enable_fp_fusion,
            "launch_cooperative_grid": options.launch_cooperative_grid,
            "extern_libs": options.extern_libs,
            "configs": [configs],
            "specialization_data": self._data(signature, constants, configs),
            "is_warmup": self.is_warmup,
        }

    def _data(
        self, signature: Mapping[str, str], constants: Mapping[str, object], configs: Any
    ) -> str:
        """A text from which `JITFunction.preload` compiles the variant again."""
        data = {
            "name": self.kernel.repr(None),
            "signature": dict(signature),
            "constexprs": dict(constants),
            "attrs": list(configs.items()),
            "options": asdict(self.options),
            "backend": self.backend.name,
        }
        return json.dumps(data, default=str)

    def _text(self, signature: Mapping[str, str]) -> str:
        """The kernel with options and types, for people."""
        shown = ("num_warps", "num_ctas", "num_stages", "enable_fp_fusion")
        options = ", ".join(f"{name}={getattr(self.options, name)}" for name in shown)
        types = ", ".join(f"{name}: {type_}" for name, type_ in signature.items())
        return f"{self.kernel.fn.__qualname__}[{options}]({types})"
