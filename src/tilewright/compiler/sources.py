"""What `compile` takes: a kernel with the types of its arguments, or a stage of one as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from tilewright.compiler.type_names import type_named
from tilewright.frontend import FrontendOptions
from tilewright.frontend.python import ArgSpec, KernelSignature, dependencies, lower_kernel
from tilewright.ir import Module
from tilewright.language import DeviceFunction, constexpr
from tilewright.support import errors

Path = int | str | tuple[int | str, ...]
"""A parameter by name or position; in front of an index into a tuple argument."""

_FACTS = {"tt.divisibility": ("aligned", "multiple_of")}


class ASTSource:
    """A Python kernel, and what is known of its arguments.

    fn: the kernel; signature: parameter name -> "*fp32", "i32", ..., "constexpr"; constexprs: name
    or position -> value; attrs: {(position,): [["tt.divisibility", 16]]}, Triton's way to say that
    a pointer is aligned to 16 bytes or that an integer is a multiple of 16.
    """

    extension = "source"

    def __init__(
        self,
        fn: DeviceFunction,
        signature: Mapping[str, str],
        constexprs: Mapping[Path, object] | None = None,
        attrs: Mapping[Path, Sequence[Sequence[object]]] | None = None,
    ) -> None:
        names = list(signature)
        values = {_name(path, names): value for path, value in (constexprs or {}).items()}
        facts = {_name(path, names): known for path, known in (attrs or {}).items()}
        missing = [n for n, t in signature.items() if t == "constexpr" and n not in values]
        if missing:
            raise errors.MissingArgument(fn.__name__, tuple(missing))
        specs = [_spec(n, t, values, facts.get(n, ())) for n, t in signature.items()]
        specs += [ArgSpec(n, "constexpr", value=v) for n, v in values.items() if n not in signature]
        self._init(fn, KernelSignature(tuple(specs)), None)

    @classmethod
    def of(
        cls, fn: DeviceFunction, signature: KernelSignature, digest: str | None = None
    ) -> ASTSource:
        """A kernel with the front end's description of its arguments.

        digest: `dependencies(fn).hash`, if it is known
        """
        source = cls.__new__(cls)
        source._init(fn, signature, digest)
        return source

    def _init(self, fn: DeviceFunction, signature: KernelSignature, digest: str | None) -> None:
        self.fn = fn
        self.name = fn.__name__
        self.signature = signature
        self._digest = digest

    def lower(self, options: FrontendOptions) -> Module:
        """The frontend's tile IR. Raises CompilationErrors."""
        return lower_kernel(self.fn, self.signature, options)

    def key(self) -> str:
        """Text that decides, with options and target, what is compiled."""
        if self._digest is None:
            self._digest = dependencies(self.fn).hash
        return f"{self._digest} {[_spec_text(spec) for spec in self.signature.args]}"


def _name(path: Path, names: Sequence[str]) -> str:
    head = path[0] if isinstance(path, tuple) else path
    return names[head] if isinstance(head, int) else head


def _spec(
    name: str, type_name: str, values: Mapping[str, object], known: Sequence[Sequence[object]]
) -> ArgSpec:
    if type_name == "constexpr" or name in values:
        return ArgSpec(name, "constexpr", value=values[name])
    type_ = type_named(type_name, f"type of '{name}'")
    pointer = type_name.startswith("*")
    facts: dict[str, int] = {}
    for fact, amount in cast("Sequence[tuple[str, int]]", known):
        if fact in _FACTS:
            facts[_FACTS[fact][0 if pointer else 1]] = amount
    return ArgSpec(name, "value", type_, facts=facts)


def _spec_text(spec: ArgSpec) -> str:
    if spec.kind == "tuple":
        kind = getattr(spec.value, "__qualname__", spec.value)
        return f"{spec.name}={kind}({', '.join(map(_spec_text, spec.items))})"
    if spec.kind == "constexpr":
        return f"{spec.name}:={value_text(spec.value)}"
    return f"{spec.name}: {spec.type} {sorted(spec.facts.items())}"


def value_text(value: object) -> str:
    """Text that differs between compile-time values of different meaning."""
    if isinstance(value, constexpr):
        return value_text(cast("object", value.value))
    if isinstance(value, DeviceFunction):
        return f"function {dependencies(value).hash}"
    if isinstance(value, tuple | list):
        items = cast("Sequence[object]", value)
        return f"{type(items).__name__}({', '.join(map(value_text, items))})"
    return f"{type(value).__name__} {value!r}"
