"""Specs as TOML: the variants of kernels that are compiled ahead of a launch.

    version = 1

    [[kernel]]
    kernel = "kernels/matmul.py:matmul"          # or "package.module:name"
    arguments = { x = "*fp16:16", n = "i32:16,>=0,<1048576", stride = "i32=1" }
    constexprs = { BLOCK = 128, ACTIVATION = { none = true }, ACC = { dtype = "fp32" } }
    options = { num_warps = 8 }
    grid = "(cdiv(n, BLOCK),)"

Compile-time values are those of TOML. Others are tables of one item: `none`, `dtype`, `function`
(the name of a kernel or a function of the language), `list` (TOML's arrays are tuples).
Paths are relative to the folder of the file.
"""

from __future__ import annotations

import json
import math
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from tilewright.aot.find_kernel import kernel_named, object_named
from tilewright.aot.spec import KernelSpec
from tilewright.language import DeviceFunction, constexpr_function, dtype, unwrap
from tilewright.support import errors
from tilewright.support.asynchronous_exceptions import synchronous

SPEC_VERSION = 1
"""Version of the form of spec files."""

_FIELDS = ("kernel", "arguments", "constexprs", "options", "grid")


def read_spec(path: str | Path) -> list[KernelSpec]:
    """The variants of a spec file, each once. The modules of its kernels are imported.

    Errors: OSError, InvalidSpec, KernelMissing, and those of `KernelSpec`.
    """
    file = Path(path)
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise errors.InvalidSpec(str(file), f"is no TOML: {problem}") from None
    _check_version(file, table)
    rows = table.get("kernel", [])
    if not isinstance(rows, list):
        raise errors.InvalidSpec(str(file), "'kernel' is no list of tables", "write [[kernel]]")
    numbered = enumerate(cast("list[Any]", rows), 1)
    specs = {
        spec_text(spec): spec for number, row in numbered for spec in [_read(file, number, row)]
    }
    return list(specs.values())


def write_spec(path: str | Path, specs: Iterable[KernelSpec]) -> None:
    """Write variants to a file. Errors: OSError, InvalidSpec for what has no name or text."""
    texts = [spec_text(spec) for spec in specs]
    Path(path).write_text("\n".join([spec_header(), *texts]), encoding="utf-8")


def spec_header() -> str:
    """The first line of a spec file."""
    return f"version = {SPEC_VERSION}\n"


def spec_text(spec: KernelSpec) -> str:
    """A variant as a table of a spec file. Errors: InvalidSpec."""
    where = spec.kernel.__name__
    lines = ["[[kernel]]", f"kernel = {json.dumps(name_of_kernel(spec.kernel))}"]
    lines.append(f"arguments = {_table(spec.arguments, where)}")
    if spec.constexprs:
        lines.append(f"constexprs = {_table(spec.constexprs, where)}")
    if spec.options:
        lines.append(f"options = {_table(spec.options, where)}")
    if spec.grid is not None:
        lines.append(f"grid = {json.dumps(spec.grid)}")
    return "\n".join([*lines, ""])


def name_of_kernel(kernel: DeviceFunction) -> str:
    """`module:name`, or `file.py:name` for the program itself. Errors: InvalidSpec."""
    function = kernel.fn
    if any(param.declared is not None for param in getattr(kernel, "params", ())):
        problem = "a kernel in Triton-C has no name in a module"
        raise errors.InvalidSpec(function.__name__, problem, "compile its source when you start")
    if "<locals>" in function.__qualname__:
        problem = "the kernel is inside a function, which no name reaches"
        raise errors.InvalidSpec(function.__qualname__, problem, "define it in a module")
    module = function.__module__
    known = sys.modules.get(module)
    spec = getattr(known, "__spec__", None)
    if module != "__main__" and spec is not None and spec.name == module:
        return f"{module}:{function.__qualname__}"
    return f"{Path(function.__code__.co_filename).resolve()}:{function.__qualname__}"


def _check_version(file: Path, table: Mapping[str, Any]) -> None:
    version = table.get("version")
    if version != SPEC_VERSION:
        found = "no version" if version is None else f"version {version}"
        problem = f"the spec has {found}, and this Tilewright reads version {SPEC_VERSION}"
        raise errors.InvalidSpec(str(file), problem, "record it again with this Tilewright")


def _read(file: Path, number: int, row: object) -> KernelSpec:
    where = f"{file}, kernel {number}"
    fields = cast("dict[str, Any]", row) if isinstance(row, dict) else {}
    unknown = [name for name in fields if name not in _FIELDS]
    if unknown:
        hint = errors.did_you_mean(unknown[0], _FIELDS) or f"there are {errors.listed(_FIELDS)}"
        raise errors.InvalidSpec(where, f"there is no field '{unknown[0]}'", hint)
    place, colon, name = str(fields.get("kernel", "")).rpartition(":")
    if not colon or not place:
        hint = 'write kernel = "package.module:name" or "file.py:name"'
        raise errors.InvalidSpec(where, "no kernel is named", hint)
    folder = file.resolve().parent
    kernel = kernel_named(str(folder / place) if place.endswith(".py") else place, name)
    arguments = _texts(where, fields.get("arguments", {}))
    constexprs = _values(where, "constexprs", fields, folder)
    options = _values(where, "options", fields, folder)
    return KernelSpec(kernel, arguments, constexprs, options, fields.get("grid"))


def _texts(where: str, table: object) -> dict[str, str]:
    items: dict[str, Any] = {"arguments": None}
    if isinstance(table, dict):
        items = cast("dict[str, Any]", table)
    for name, text in items.items():
        if not isinstance(text, str):
            hint = "write name = \"type:facts\", as in n = 'i32:16,>=0'"
            raise errors.InvalidSpec(where, f"argument '{name}' is no text", hint)
    return items


def _values(where: str, name: str, fields: Mapping[str, Any], folder: Path) -> dict[str, object]:
    table = fields.get(name, {})
    if not isinstance(table, dict):
        raise errors.InvalidSpec(where, f"'{name}' is no table", f"write {name} = {{ NAME = 1 }}")
    items = cast("dict[str, Any]", table).items()
    return {key: _read_value(f"{where}, {key}", value, folder) for key, value in items}


def _read_value(where: str, written: Any, folder: Path) -> object:
    """The compile-time value of a value of TOML."""
    if isinstance(written, list):
        return tuple(_read_value(where, item, folder) for item in cast("list[Any]", written))
    if not isinstance(written, dict):
        return written
    table = cast("dict[str, Any]", written)
    (kind, value), *rest = table.items() or {"": None}.items()
    if rest or kind not in _READERS:
        hint = f"there are {errors.listed(_READERS)}"
        raise errors.InvalidSpec(where, "a table has one item that names a kind", hint)
    return _READERS[kind](where, value, folder)


def _read_dtype(where: str, value: Any, folder: Path) -> object:
    try:
        return dtype(value)
    except synchronous(errors.TilewrightError, ValueError, TypeError, KeyError, AssertionError):
        raise errors.InvalidSpec(where, f"there is no dtype '{value}'") from None


def _read_function(where: str, value: Any, folder: Path) -> object:
    place, _, name = str(value).rpartition(":")
    return object_named(str(folder / place) if place.endswith(".py") else place, name)


def _read_list(where: str, value: Any, folder: Path) -> object:
    return list(cast("tuple[object, ...]", _read_value(where, value, folder)))


_READERS: dict[str, Callable[[str, Any, Path], object]] = {
    "none": lambda where, value, folder: None,
    "dtype": _read_dtype,
    "function": _read_function,
    "list": _read_list,
}
"""Kinds of compile-time values that TOML lacks."""


def _table(values: Mapping[str, object], where: str) -> str:
    items = (f"{_key(name)} = {_value(value, where)}" for name, value in values.items())
    return f"{{ {', '.join(items)} }}" if values else "{}"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def _value(value: object, where: str) -> str:
    """A compile-time value as TOML. Errors: InvalidSpec."""
    value = unwrap(value)
    if value is None:
        return "{ none = true }"
    if isinstance(value, bool):
        return "true" if value else "false"
    if type(value) in (int, str):
        return json.dumps(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, dtype):
        return f"{{ dtype = {json.dumps(value.name)} }}"
    if isinstance(value, DeviceFunction | constexpr_function):
        return f"{{ function = {json.dumps(name_of_kernel(cast('DeviceFunction', value)))} }}"
    if type(value) in (tuple, list):
        items = ", ".join(_value(item, where) for item in cast("Sequence[object]", value))
        return f"[{items}]" if type(value) is tuple else f"{{ list = [{items}] }}"
    problem = f"a compile-time value has no text: {value!r}"
    raise errors.InvalidSpec(where, problem, "pass a number, a text, a dtype or a function")
