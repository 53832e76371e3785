"""Sources of `compile`: a kernel with the types of its arguments, or a stage of one as text."""

from __future__ import annotations

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

from tilewright.compiler.artifacts import SOURCE
from tilewright.compiler.type_names import (
    DescriptorType,
    name_of_descriptor,
    name_of_type,
    type_named,
)
from tilewright.frontend import FrontendOptions, python
from tilewright.frontend.python import (
    ArgSpec,
    Dependencies,
    KernelSignature,
    dependencies,
    source_of,
)
from tilewright.ir import Module
from tilewright.ir.types import PointerType, Type
from tilewright.language import (
    Constexpr,
    DeviceFunction,
    TensorDescriptor,
    constexpr_function,
    is_builtin,
    unwrap,
)
from tilewright.support import call_user_function, errors, function_late

_parse_argument = function_late("tilewright.compiler.argument_notation:parse_argument")

Place = int | str | tuple[int | str, ...]
"""A parameter by name or position, perhaps the only item of a tuple."""


NON_NEGATIVE = "tilewright.non_negative"
"""The attribute of a non-negative integer argument, which launches record besides divisibility."""


class Language(Enum):
    """Languages of kernels, for Triton's hooks."""

    TRITON = 0
    GLUON = 1


class KernelSource(ABC):
    """A kernel in a source language, with the types and facts of its arguments.

    name: of the kernel; location: its "file:line", for messages; arguments: of its launches;
    suffix: of files in that language; comment: the start of a comment there
    """

    extension = SOURCE
    suffix = ".py"
    comment = "#"
    name: str
    location: str
    arguments: KernelSignature

    @abstractmethod
    def lower(self, options: FrontendOptions) -> Module:
        """The front end's tile IR. Errors: CompilationErrors."""

    @abstractmethod
    def key(self) -> str:
        """Text that determines the code, together with options and target."""

    def hash(self) -> str:
        """`key` as a hash, in hexadecimal digits."""
        return hashlib.sha256(self.key().encode()).hexdigest()

    @property
    @abstractmethod
    def text(self) -> str:
        """The source text of the kernel."""

    @property
    def signature(self) -> dict[str, str]:
        """The types of the arguments by name, in Triton's notation."""
        return specialization_of(self.arguments).signature

    @property
    def constants(self) -> dict[tuple[int, ...], object]:
        """The compile-time arguments by (position,)."""
        specs = enumerate(self.arguments.args)
        return {(i,): spec.value for i, spec in specs if spec.kind == "constexpr"}

    @property
    def constant_texts(self) -> dict[str, str]:
        """The compile-time arguments by name, as users know them."""
        constants = specialization_of(self.arguments).constants.items()
        values = {name: unwrap(value) for name, value in constants}
        return {name: getattr(value, "__name__", str(value)) for name, value in values.items()}

    def run_time_arguments(self, args: Sequence[object]) -> list[object]:
        """The run-time arguments of a launch, with tuples flattened.

        The given ones may be all arguments of the kernel in order, or only the run-time ones.
        """
        specs = self.arguments.args
        if len(args) != len(specs):
            specs = tuple(spec for spec in specs if spec.kind != "constexpr")
            if len(args) != len(specs):
                raise errors.ArgumentCount(self.name, len(self.arguments.args), len(args))
        return _run_time(specs, args)

    def run_time_places(self) -> tuple[tuple[int, ...], int] | None:
        """Positions of the run-time arguments among all arguments, and the number of all arguments.

        None if some are nested in others, as in a tuple.
        """
        kinds = [spec.kind for spec in self.arguments.args]
        if not {*kinds} <= {"value", "constexpr"}:
            return None
        return tuple(i for i, kind in enumerate(kinds) if kind == "value"), len(kinds)


class ASTSource(KernelSource):
    """A Python kernel, with the types and facts of its arguments.

    fn: the kernel; signature: parameter name -> "constexpr", or type and facts, see
    `argument_notation`: "*fp32", "i32:16,>=0", "i32=1", "tensordesc<fp16[64, 64]>" ...; constexprs:
    name or position -> value; attrs: facts in Triton's notation, {(position,): [["tt.divisibility",
    16]]}, for a pointer that is aligned to 16 bytes, an integer that is a multiple of 16, or a
    tensor descriptor whose rows are multiples of 16 bytes; and [NON_NEGATIVE, 1] of an integer

    Errors: MissingArgument (a constexpr without a value), InvalidOption (an unknown type),
    InvalidArgumentText (facts that contradict the type or each other).
    """

    def __init__(
        self,
        fn: DeviceFunction,
        signature: Mapping[str, str],
        constexprs: Mapping[Any, object] | None = None,
        attrs: Mapping[Any, Sequence[Sequence[object]]] | None = None,
    ) -> None:
        names = list(signature)
        values = {_name(place, names): value for place, value in (constexprs or {}).items()}
        facts = {_name(position, names): promises for position, promises in (attrs or {}).items()}
        missing = [n for n, t in signature.items() if t == "constexpr" and n not in values]
        if missing:
            raise errors.MissingArgument(fn.__name__, tuple(missing))
        specs = [_spec(n, t, values, facts.get(n, ())) for n, t in signature.items()]
        specs += [ArgSpec(n, "constexpr", value=v) for n, v in values.items() if n not in signature]
        self._init(fn, KernelSignature(tuple(specs)), None)

    @classmethod
    def of(
        cls,
        fn: DeviceFunction,
        signature: KernelSignature,
        digest: str | None = None,
        name: str | None = None,
    ) -> ASTSource:
        """A kernel with the front end's description of its arguments.

        digest: `dependencies(fn).hash`, if it is known; name: of the kernel, unless it is fn's
        """
        source = cls.__new__(cls)
        source._init(fn, signature, digest)
        source.name = _symbol(name) if name else source.name
        return source

    def _init(self, fn: DeviceFunction, signature: KernelSignature, digest: str | None) -> None:
        self.fn = fn
        self.name = _symbol(fn.__name__)
        code = fn.fn.__code__
        self.location = f"{code.co_filename}:{code.co_firstlineno}"
        self.arguments = signature
        self._digest = digest

    def lower(self, options: FrontendOptions) -> Module:
        """The front end's tile IR. Errors: CompilationErrors."""
        module = python.lower_kernel(self.fn, self.arguments, options)
        module.kernel.name = self.name
        return module

    @property
    def text(self) -> str:
        """The Python source of the kernel."""
        return source_of(self.fn.fn).dedented_text

    def key(self) -> str:
        """Text that determines the code, together with options and target."""
        if self._digest is None:
            self._digest = dependencies(self.fn).hash
        named = "" if self.name == self.fn.__name__ else f" as {self.name}"
        return f"{self._digest} {signature_text(self.arguments)}{named}"


class Compilable(Protocol):
    """A kernel in a source language, without its arguments."""

    def find_dependencies(self) -> Dependencies:
        """A hash of everything that affects the kernel's meaning at present."""
        ...

    def source(self, signature: KernelSignature, digest: str) -> KernelSource:
        """The kernel for these arguments; `digest` is the hash of its dependencies."""
        ...


class Specialization(NamedTuple):
    """Compile-time values and types of a variant, by the parameter's name."""

    constants: dict[str, object]
    signature: dict[str, str]


def specialization_of(signature: KernelSignature) -> Specialization:
    """The specialization for the arguments of a kernel.

    An argument that is not a scalar has the type "constexpr" or "tuple", or is a descriptor.
    """
    constants = {spec.name: spec.value for spec in signature.args if spec.kind == "constexpr"}
    return Specialization(constants, {spec.name: _type_name(spec) for spec in signature.args})


def _type_name(spec: ArgSpec) -> str:
    if spec.kind == "value":
        return name_of_type(cast("Type", spec.type))
    if spec.kind != "descriptor":
        return spec.kind
    pointer = cast("PointerType", spec.items[0].type)
    return name_of_descriptor(DescriptorType(pointer, *cast("tuple[Any, Any]", spec.value)))


class PythonKernel:
    """A kernel written as a Python function; name(specialization) -> name of a variant."""

    def __init__(
        self, fn: DeviceFunction, name: Callable[[Specialization], str] | None = None
    ) -> None:
        self._fn = fn
        self._name = name

    def find_dependencies(self) -> Dependencies:
        """A hash of the source, the functions that it calls, and the globals that they use."""
        return dependencies(self._fn)

    def source(self, signature: KernelSignature, digest: str) -> KernelSource:
        """The function with its arguments' types."""
        name = None
        if self._name is not None:
            takes = "the specialization"
            name = call_user_function("repr", takes, self._name, specialization_of(signature))
            # as a symbol of the machine code
            name = re.sub(r"\W", "_", str(name))
        return ASTSource.of(self._fn, signature, digest, name)


class IRSource:
    """A stage of a kernel as text: tile IR (`source`, `ttir`) or a later stage (`llir`).

    text: the text, or the path of a file whose suffix is the stage; extension: the stage, for text;
    metadata: facts that earlier stages recorded, which stages after tile IR need. A dumped file has
    it in `kernel.json` in the same folder.

    Errors: InvalidOption.
    """

    def __init__(
        self,
        text: str | Path,
        extension: str | None = None,
        metadata: Mapping[str, object] | None = None,
    ) -> None:
        path = _path(text)
        if path is not None:
            extension = extension or path.suffix.removeprefix(".")
            # the place where `dump_metadata` writes it
            beside = path.with_name("kernel.json")
            if metadata is None and beside.exists():
                metadata = json.loads(beside.read_text(encoding="utf-8"))
            text = read_source(path)
        self.location = f"stage {extension or 'ttir'} {'as text' if path is None else path}"
        self.text = str(text)
        self.extension = extension or "ttir"
        self.metadata = dict(metadata or {})
        self.name = str(self.metadata.get("name") or _first_name(self.text))

    def key(self) -> str:
        """Text that determines the code, together with options and target."""
        digest = hashlib.sha256(self.text.encode()).hexdigest()
        return f"{self.extension} {digest} {sorted(self.metadata.items())}"

    def hash(self) -> str:
        """`key` as a hash, in hexadecimal digits."""
        return hashlib.sha256(self.key().encode()).hexdigest()

    def run_time_arguments(self, args: Sequence[object]) -> list[object]:
        """All arguments: a kernel from text has no compile-time arguments."""
        return list(args)

    def run_time_places(self) -> None:
        """Unknown: the text may be of a later stage than tile IR."""


def read_source(path: Path) -> str:
    """The text of a stage in a file. Errors: OSError; SourceNotAvailable for text that is not
    UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as problem:
        raise errors.SourceNotAvailable(str(path), str(problem), is_file=True) from None


def _path(text: str | Path) -> Path | None:
    """`text` as a path, if it is one: without line breaks, and with a suffix."""
    if isinstance(text, Path):
        return text
    return Path(text) if "\n" not in text and re.search(r"\.\w+$", text) else None


def _symbol(name: str) -> str:
    """A name in ASCII, for LLVM, PTX and linkers; a Python name may contain any letters."""
    return "".join(char if char.isascii() else f"_u{ord(char):04x}" for char in name)


def _first_name(text: str) -> str:
    """The first symbol that is defined in a text of tile IR or LLVM IR."""
    symbol = re.search(r"@([\w.$]+)", text)
    return symbol.group(1) if symbol else "kernel"


def _name(place: Place, names: Sequence[str]) -> str:
    head = place[0] if isinstance(place, tuple) else place
    return names[head] if isinstance(head, int) else head


def _spec(
    name: str, text: str, values: Mapping[str, object], attributes: Sequence[Sequence[object]]
) -> ArgSpec:
    if text == "constexpr" or name in values:
        integer = type(values[name]) is int and text != "constexpr"
        # as an integer argument that is 1 in a launch: it is constant, and has a dtype
        type_ = type_named(text, f"type of '{name}'") if integer else None
        return ArgSpec(name, "constexpr", type_, values[name])
    stated, facts = _parse_argument(text, name), dict(cast("Sequence[tuple[str, int]]", attributes))
    divisor = facts.get("tt.divisibility", stated.divisor)
    low = 0 if NON_NEGATIVE in facts else stated.low
    return replace(stated, divisor=divisor, low=low).spec(name)


def _run_time(specs: Sequence[ArgSpec], args: Sequence[object]) -> list[object]:
    passed: list[object] = []
    for spec, arg in zip(specs, args, strict=True):
        if spec.kind == "tuple":
            passed += _run_time(spec.items, cast("Sequence[object]", arg))
        elif spec.kind == "descriptor":
            passed += cast("TensorDescriptor", arg).parts()
        elif spec.kind == "value":
            passed.append(arg)
    return passed


def signature_text(signature: KernelSignature) -> str:
    """Text that differs between signatures with different code."""
    return str([_spec_text(spec) for spec in signature.args])


def _spec_text(spec: ArgSpec) -> str:
    if spec.kind == "tuple":
        # by name: the key must be the same in another process, where the class has another address
        kind = getattr(spec.value, "__qualname__", spec.value)
        return f"{spec.name}={kind}({', '.join(map(_spec_text, spec.items))})"
    if spec.kind == "descriptor":
        return f"{spec.name}: {spec.value}({', '.join(map(_spec_text, spec.items))})"
    if spec.kind == "constexpr":
        return f"{spec.name}:={_value_text(spec.value)} {spec.type or ''}"
    return f"{spec.name}: {spec.type} {sorted(spec.facts.items())}"


def _value_text(value: object) -> str:
    """Text that differs between compile-time values of different meaning."""
    if isinstance(value, Constexpr):
        return _value_text(cast("object", value.value))
    if isinstance(value, DeviceFunction | constexpr_function):
        return f"function {dependencies(cast('DeviceFunction', value)).hash}"
    if is_builtin(value):
        # by name: its address differs between processes
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"
    if isinstance(value, tuple | list):
        items = cast("Sequence[object]", value)
        return f"{type(items).__name__}({', '.join(map(_value_text, items))})"
    # with the type, since 1, 1.0 and True are equal and differ in meaning
    return f"{type(value).__name__} {value!r}"
