"""The parameters of a kernel function, and their annotations."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

from tilewright.compiler import find_type
from tilewright.ir.types import PointerType, Scalar
from tilewright.language import const, constexpr, dtype
from tilewright.support.asynchronous_exceptions import synchronous
from tilewright.support.data_class import dataclass

_KINDS = inspect.Parameter


@dataclass(frozen=True, slots=True)
class Declared:
    """The declaration of a parameter in a language whose parameters have types.

    multiple: a divisor of its value, or its address; handler: argument -> key and value; it accepts
    int, float, bool and arrays if the type fits, and may convert other values.
    """

    type: Scalar
    multiple: int
    handler: Callable[[Any], tuple[Any, Any]]

    def takes_as_is(self, value: object) -> bool:
        """Whether `handler` neither converts an argument nor distinguishes it from others of its
        type and range; floats may be given as ints."""
        if isinstance(self.type, PointerType):
            return not isinstance(value, int | None)
        if self.type.is_integer:
            return type(value) is (bool if self.type.is_bool else int)
        return type(value) in (int, float)


@dataclass(frozen=True, slots=True)
class KernelParam:
    """One parameter.

    num: its position; type: what an annotation fixes, else None; const: annotated `tl.const`;
    do_not_specialize, do_not_specialize_on_alignment: as given to `jit`; kind: as in `inspect`;
    declared: in a language where parameters have types.
    """

    name: str
    num: int
    annotation: object
    default: object
    kind: Any
    is_constexpr: bool
    type: Scalar | None
    const: bool
    do_not_specialize: bool
    do_not_specialize_on_alignment: bool
    declared: Declared | None = None

    @property
    def is_const(self) -> bool:
        """Triton's name of `const`."""
        return self.const

    @property
    def has_default(self) -> bool:
        """Whether a launch may leave it out."""
        return self.default is not _KINDS.empty

    @property
    def is_keywords(self) -> bool:
        """Whether it is `**META`."""
        return self.kind is _KINDS.VAR_KEYWORD

    @property
    def is_rest(self) -> bool:
        """Whether it is `*args`."""
        return self.kind is _KINDS.VAR_POSITIONAL

    @property
    def is_positional(self) -> bool:
        """Whether it may be given by position."""
        return self.kind in (_KINDS.POSITIONAL_ONLY, _KINDS.POSITIONAL_OR_KEYWORD)

    def renamed(self, name: str) -> KernelParam:
        """The parameter under another name: an entry of `**META`."""
        return replace(self, name=name)


Selection = Sequence[str | int] | None


def parameters_of(
    fn: Callable[..., object], fixed: Selection = None, unaligned: Selection = None
) -> tuple[KernelParam, ...]:
    """The parameters of a function. fixed, unaligned: the parameters that are not specialized."""
    annotations = _annotations(fn)
    params: list[KernelParam] = []
    for num, parameter in enumerate(inspect.signature(fn).parameters.values()):
        name, annotation = parameter.name, annotations.get(parameter.name)
        params.append(
            KernelParam(
                name,
                num,
                annotation,
                parameter.default,
                parameter.kind,
                _is(annotation, constexpr),
                _fixed_type(annotation),
                _is(annotation, const),
                _selects(fixed, name, num),
                _selects(unaligned, name, num),
            )
        )
    return tuple(params)


def kernel_parameters(fn: Callable[..., object]) -> tuple[KernelParam, ...]:
    """The parameters of a function, all specialized."""
    return parameters_of(fn)


def _selects(selection: Selection, name: str, num: int) -> bool:
    if isinstance(selection, str):
        return name == selection
    return selection is not None and (name in selection or num in selection)


def _annotations(fn: Callable[..., object]) -> dict[str, Any]:
    """Annotations, those of `from __future__ import annotations` evaluated one by one."""
    return {
        name: _evaluated(fn, text) if isinstance(text, str) else text
        for name, text in inspect.get_annotations(fn).items()
    }


def _evaluated(fn: Callable[..., object], text: str) -> object:
    """The value of an annotation given as a string; the string itself if it is no expression."""
    try:
        return eval(text, getattr(fn, "__globals__", {}))  # noqa: S307
    except synchronous(Exception):  # "*fp32" and names that exist only for type checkers
        return text


def _is(annotation: object, marker: type) -> bool:
    if isinstance(annotation, str):
        return annotation.rpartition(".")[2].strip() == marker.__name__
    return annotation is marker


def _fixed_type(annotation: object) -> Scalar | None:
    """The type that an annotation fixes: `tl.int64`, "i64", "*fp16", `tl.pointer_type(...)`."""
    if isinstance(annotation, dtype) and not annotation.is_block():
        return cast("Scalar", annotation.ir)
    return find_type(annotation) if isinstance(annotation, str) else None
