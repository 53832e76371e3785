"""A launch with its arguments bound to parameters. `BoundCall.key` makes the launch key from the
`KeyRule`s of the parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from inspect import Parameter
from types import MappingProxyType
from typing import Any, cast

from tilewright.backends import Backend, CommonOptions
from tilewright.frontend.python import ArgSpec, KernelSignature, descriptor_spec
from tilewright.ir.types import PointerType, i32
from tilewright.runtime.active_driver import backend_of, driver
from tilewright.runtime.arguments.descriptor_arguments import DescriptorKey
from tilewright.runtime.arguments.kernel_parameters import KernelParam
from tilewright.runtime.arguments.key_rules import (
    HOST,
    MOCK,
    Key,
    KeyRule,
    Spec,
    TupleKey,
    constant_key,
    rules_of,
    run_time_pairs,
)
from tilewright.runtime.launch.launch_options import refuse_unknown, split_keywords
from tilewright.support import cached_property, errors
from tilewright.support.data_class import dataclass


@dataclass
class BoundCall:
    """A launch of `kernel`. Properties are computed at their first use.

    params: the kernel's without `**META`; rules, args: one for each of them; keywords: the others,
    which are options of the backend or entries of `**META`; assigned: the settings of compilation
    that were assigned in this process; bounds: of integers that were declared, low <= value < high.
    """

    kernel: str
    all_params: Sequence[KernelParam]
    params: Sequence[KernelParam]
    rules: Sequence[KeyRule]
    args: Sequence[object]
    keywords: Mapping[str, object]
    assigned: Mapping[str, object]
    bounds: Mapping[str, tuple[int, int]]

    @cached_property
    def named(self) -> dict[str, object]:
        """Arguments and other keywords by name, as a callable grid sees them."""
        names = (param.name for param in self.params)
        return {**dict(zip(names, self.args, strict=True)), **self.keywords}

    @cached_property
    def _specialized(self) -> tuple[list[Key], list[object]]:
        keys: list[Key] = []
        values: list[object] = []
        try:
            for rule, arg in zip(self.rules, self.args, strict=True):
                key, value = rule.key(arg)
                keys.append(key)
                values.append(value)
        except (errors.UnsupportedArgument, errors.DeviceMismatch) as problem:
            problem.argument = problem.argument or self.params[len(keys)].name
            raise
        return keys, values

    @property
    def keys(self) -> list[Key]:
        """The key of each argument: its part in choosing the variant."""
        return self._specialized[0]

    @property
    def values(self) -> list[object]:
        """The value to pass for each argument."""
        return self._specialized[1]

    @cached_property
    def key(self) -> tuple[object, ...]:
        """The launch key: launches with equal keys run the same variant."""
        keywords = ((name, constant_key(value)) for name, value in self.keywords.items())
        outside = self.outside if self.bounds else ()
        return (*self.keys, *keywords, *self.assigned_settings, *outside)

    @cached_property
    def outside(self) -> list[tuple[str, str]]:
        """The integer arguments that are outside of their bounds, as parts of a launch key."""
        found: list[tuple[str, str]] = []
        for param, arg in zip(self.params, self.args, strict=True):
            low, high = self.bounds.get(param.name, (0, 0))
            if high > low and type(arg) is int and not low <= arg < high:
                found.append((param.name, "outside of the declared range"))
        return found

    @cached_property
    def assigned_settings(self) -> tuple[tuple[str, object], ...]:
        """The assigned settings, which also decide code, as of the first use."""
        return tuple(self.assigned.items())

    @property
    def named_keys(self) -> dict[str, object]:
        """The key in readable form: parameter or keyword -> its specialization."""
        params = zip((param.name for param in self.params), self.keys, strict=True)
        return {**dict(params), **self.keywords}

    @cached_property
    def device(self) -> str:
        """Where the arrays are: "cpu", "cuda:1"; "" without arrays. Raises DeviceMismatch.

        Those on the host may be used on a GPU if they are pinned."""
        arrays = [
            (name, spec.device, value)
            for name, spec, value in self._run_time_values()
            if spec.device not in ("", MOCK)
        ]
        # mock tensors and numbers have no device
        if not arrays:
            return ""
        # a GPU array decides even after host arrays, which a GPU can use if they are pinned
        first, device, _ = next((array for array in arrays if array[1] != HOST), arrays[0])
        backend = backend_of(device)
        if backend is None:
            raise errors.DeviceMismatch(first, device, _device_text(HOST))
        for name, where, value in arrays:
            if where != device and not (where == HOST and _is_usable(value, backend)):
                raise errors.DeviceMismatch(name, _device_text(where), _device_text(device))
        return device

    @cached_property
    def backend(self) -> Backend:
        """The backend of that device; without arrays, the active one."""
        return backend_of(self.device) or driver.active.backend

    def on(self, backend: Backend, device: str | None = None) -> BoundCall:
        """The launch, for another backend, or another device, than that of its arrays; before the
        first use."""
        vars(self)["backend"] = backend
        if device is not None:
            vars(self)["device"] = device
        return self

    @property
    def run_time_specs(self) -> list[tuple[str, Spec]]:
        """Name and Spec of each run-time argument, tuples flattened."""
        return [(name, spec) for name, spec, _ in self._run_time_values()]

    def host_arrays(self) -> list[Any]:
        """The arguments that are arrays in the memory of the host, tuples flattened."""
        pairs = run_time_pairs(self.keys, self.args)
        return [arg for spec, arg in pairs if spec.device == HOST and arg is not None]

    def _run_time_values(self) -> Iterator[tuple[str, Spec, Any]]:
        """Name, Spec and passed value of each run-time argument."""
        for param, key, value in zip(self.params, self.keys, self.values, strict=True):
            for spec, passed in run_time_pairs([key], [value]):
                yield param.name, spec, passed

    @cached_property
    def _split(self) -> tuple[dict[str, Any], dict[str, object]]:
        names = self.backend.options.names()
        return split_keywords(self.kernel, self.all_params, self.keywords, names)

    @property
    def options(self) -> dict[str, Any]:
        """Options of the backend, as given."""
        return self._split[0]

    @property
    def meta(self) -> dict[str, object]:
        """The entries of the kernel's `**META`."""
        return self._split[1]

    @property
    def signature(self) -> KernelSignature:
        """The arguments as the front end describes them."""
        triples = zip(self.params, self.keys, self.values, strict=True)
        specs = [argument_spec(param, key, value) for param, key, value in triples]
        meta_params = [param for param in self.all_params if param.is_keywords]
        for name, value in self.meta.items():
            specs.append(argument_spec(meta_params[0].renamed(name), constant_key(value), value))
        return KernelSignature(tuple(specs))


class Binder:
    """Binds the arguments of launches to the parameters of a kernel.

    assigned, bounds: see BoundCall
    """

    def __init__(
        self,
        kernel: str,
        params: Sequence[KernelParam],
        assigned: Mapping[str, object],
        bounds: Mapping[str, tuple[int, int]] = MappingProxyType({}),
    ) -> None:
        self._kernel = kernel
        self._params = params
        self._assigned = assigned
        self._bounds = bounds
        self._ordered = [param for param in params if not param.is_keywords]
        self._rules = rules_of(self._ordered)
        self._named = [param for param in self._ordered if not param.is_rest]
        by_position = Parameter.POSITIONAL_ONLY
        self._places = {
            param.name: place
            for place, param in enumerate(self._named)
            if param.kind is not by_position
        }
        # as in Triton: given by keyword they set the option, given by position they do not
        constants = {param.name for param in self._named if param.is_constexpr}
        self._both = constants & CommonOptions.names()
        self._defaults: list[object] = [
            param.default if param.has_default else _MISSING for param in self._named
        ]
        # signatures have positional parameters first
        self._positional = sum(param.is_positional for param in self._named)
        self._rest = next((i for i, param in enumerate(self._ordered) if param.is_rest), None)

    def bind(self, args: tuple[object, ...], keywords: Mapping[str, object]) -> BoundCall:
        """Bind the arguments of a launch.

        Errors: ArgumentCount, MissingArgument, UnknownArgument; TypeError as of Python functions.
        """
        values, others = [*args[: self._positional]], {}
        count = len(values)
        values += self._defaults[count:]
        if keywords:
            others = self._place(values, count, keywords)
        if count < len(values) and any(value is _MISSING for value in values):
            self._refuse_missing(values, others)
        if self._rest is not None:
            values.insert(self._rest, args[self._positional :])
        elif len(args) > self._positional:
            instead = "options such as num_warps are passed by keyword"
            raise errors.ArgumentCount(self._kernel, self._positional, len(args), instead)
        return BoundCall(
            self._kernel, self._params, self._ordered, self._rules, values, others,
            self._assigned, self._bounds,
        )  # fmt: skip

    def _place(
        self, values: list[object], count: int, keywords: Mapping[str, object]
    ) -> dict[str, object]:
        """Store keyword arguments in `values`, whose first `count` are given by position; return
        the keywords that are no parameters, and those that name an option as well."""
        others: dict[str, object] = {}
        for name, value in keywords.items():
            place = self._places.get(name)
            if place is None:
                others[name] = value
            elif place < count:
                text = f"{self._kernel}() got multiple values for argument {name!r}"
                raise TypeError(text)
            else:
                values[place] = value
                if name in self._both:
                    others[name] = value
        return others

    def _refuse_missing(self, values: Sequence[object], others: Mapping[str, object]) -> None:
        # A misspelt keyword explains a missing argument better.
        refuse_unknown(self._kernel, self._params, others)
        named = zip(self._named, values, strict=True)
        missing = tuple(param.name for param, value in named if value is _MISSING)
        raise errors.MissingArgument(self._kernel, missing)


_MISSING = object()


def _is_usable(address: int, backend: Backend) -> bool:
    """Whether kernels of a backend may use memory of the host."""
    memory = backend.memory
    return memory is not None and backend.available() and memory.usable(address)


def _device_text(device: str) -> str:
    return "the CPU" if device == HOST else device


def argument_spec(param: KernelParam, key: Key, value: object) -> ArgSpec:
    """An argument as the front end describes it."""
    if param.is_constexpr or param.is_keywords:
        return ArgSpec(param.name, "constexpr", value=value)
    return _item_spec(param.name, key, value, param.const)


def _item_spec(name: str, key: Key, value: object, const: bool) -> ArgSpec:
    """The description of an argument, or an item of a tuple, that is not declared constexpr."""
    if isinstance(key, Spec):
        type_ = key.type
        if const and isinstance(type_, PointerType):
            type_ = PointerType(type_.element, const=True)
        return ArgSpec(name, "value", type_, facts=key.facts())
    if isinstance(key, DescriptorKey):
        pointer = PointerType(key.element, const)
        return descriptor_spec(name, pointer, *key.blocks, key.even_rows)
    if isinstance(key, TupleKey):
        pairs = zip(key.items, cast("Sequence[object]", value), strict=True)
        items = [_item_spec(f"{name}_{i}", k, v, const) for i, (k, v) in enumerate(pairs)]
        return ArgSpec(name, "tuple", value=key.kind, items=tuple(items))
    type_ = i32 if isinstance(key, int) else None
    return ArgSpec(name, "constexpr", type_, value)
