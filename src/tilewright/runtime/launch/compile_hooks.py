"""The hooks before and after a variant is compiled, with Triton's arguments."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, cast

from tilewright.backends import Backend, CommonOptions
from tilewright.compiler import NON_NEGATIVE, KernelSource, name_of_type, specialization_of
from tilewright.frontend.python import ArgSpec
from tilewright.language import dtype, unwrap
from tilewright.support.data_class import dataclass

Hook = Callable[..., Any]


def full_name(kernel: Any) -> str:
    """Module and qualified name of a kernel."""
    return f"{kernel.fn.__module__}.{kernel.fn.__qualname__}"


_DTYPE = "dtype"


def _written(value: object) -> object:
    """A compile-time value as JSON; a dtype is {"dtype": name}."""
    value = unwrap(value)
    if isinstance(value, dtype):
        return {_DTYPE: value.name}
    if isinstance(value, tuple | list):
        return [_written(item) for item in cast("Sequence[object]", value)]
    return value


def _facts(spec: ArgSpec) -> list[tuple[str, int]]:
    """Facts about the values of an argument, in the form of `ASTSource`."""
    names = {"non_negative": NON_NEGATIVE}
    return [(names.get(name, "tt.divisibility"), amount) for name, amount in spec.facts.items()]


def read_value(written: object) -> object:
    """The compile-time value of a JSON value; a list becomes a tuple."""
    if isinstance(written, dict):
        return dtype(cast("dict[str, str]", written)[_DTYPE])
    if isinstance(written, list):
        return tuple(map(read_value, cast("list[object]", written)))
    return written


class CompileSkipped(Exception):
    """The hook before compiling vetoed the compilation."""


@dataclass(frozen=True, slots=True)
class JitFunctionInfo:
    """The kernel that a hook is called for."""

    module: str
    name: str
    jit_function: Any


@dataclass(frozen=True, slots=True)
class Variation:
    """A variant of `kernel` to be compiled. key: its key in memory; is_warmup: whether it is
    compiled without a launch."""

    kernel: Any
    source: KernelSource
    backend: Backend
    options: CommonOptions
    key: str
    is_warmup: bool

    def call(self, hook: Hook | None) -> bool:
        """Call a hook, if there is one, and return whether its result is true."""
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
            "key": self.key,
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
            "specialization_data": self._data(signature, constants),
            "is_warmup": self.is_warmup,
        }

    def _data(self, signature: Mapping[str, str], constants: Mapping[str, object]) -> str:
        """A text from which `JITFunction.preload` compiles the variant again."""
        specs = enumerate(self.source.arguments.args)
        # including an integer argument that is 1, which hooks are passed as "constexpr"
        types = {
            spec.name: name_of_type(spec.type)
            for spec in self.source.arguments.args
            if spec.type is not None
        }
        data = {
            "name": full_name(self.kernel),
            "signature": {**signature, **types},
            "constexprs": {name: _written(value) for name, value in constants.items()},
            "attrs": [((i,), _facts(spec)) for i, spec in specs if spec.facts],
            "options": asdict(self.options),
            "backend": self.backend.name,
        }
        return json.dumps(data, default=str)

    def _text(self, signature: Mapping[str, str]) -> str:
        """The kernel with options and types, in readable form."""
        shown = ("num_warps", "num_ctas", "num_stages", "enable_fp_fusion")
        options = ", ".join(f"{name}={getattr(self.options, name)}" for name in shown)
        types = ", ".join(f"{name}: {type_}" for name, type_ in signature.items())
        return f"{self.kernel.fn.__qualname__}[{options}]({types})"
