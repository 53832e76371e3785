"""One launch that has to be looked at closely: its arguments bound, specialized, and checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.backends import Backend
from tilewright.frontend.python import KernelSignature
from tilewright.runtime.active_driver import backend_of, driver
from tilewright.runtime.arguments.host_arrays import plain
from tilewright.runtime.arguments.kernel_parameters import KernelParam
from tilewright.runtime.arguments.specialization import (
    HANDLERS,
    HOST,
    MOCK,
    Handled,
    Key,
    Spec,
    constant_key,
)
from tilewright.runtime.launch.launch_function import MISSING, special_handler
from tilewright.runtime.launch.launch_options import refuse_unknown, split_words
from tilewright.runtime.launch.variant import arg_spec, run_time_pairs
from tilewright.support import cached_property, errors, settings


@dataclass
class Call:
    """A launch of `kernel`.

    params: the kernel's without `**META`; args: one for each of them; words: the other keywords.
    """

    kernel: str
    all_params: Sequence[KernelParam]
    params: Sequence[KernelParam]
    args: Sequence[object]
    words: Mapping[str, object]

    @cached_property
    def named(self) -> dict[str, object]:
        """Arguments and other keywords by name, as a callable grid sees them."""
        names = (param.name for param in self.params)
        return {**dict(zip(names, self.args, strict=True)), **self.words}

    @cached_property
    def _handled(self) -> list[Handled]:
        return [_handled(param, arg) for param, arg in zip(self.params, self.args, strict=True)]

    @cached_property
    def keys(self) -> list[Key]:
        """What of each argument decides the variant."""
        return [key for key, _ in self._handled]

    @cached_property
    def values(self) -> list[object]:
        """What is passed for each argument."""
        return [value for _, value in self._handled]

    @cached_property
    def key(self) -> tuple[object, ...]:
        """What decides the variant; the generated launch function makes the same."""
        takes_all = any(param.is_keywords for param in self.all_params)
        words = [
            (name, value if _hashable(value) and not takes_all else constant_key(value))
            for name, value in self.words.items()
        ]
        assigned = vars(settings().compilation)
        return (*self.keys, *words, *assigned.items())

    @cached_property
    def device(self) -> str:
        """Where the arrays are: "cpu", "cuda:1"; "" without arrays. Raises DeviceMismatch.

        Those on the host may be used on a GPU if they are pinned."""
        arrays = [
            (name, spec.device, value)
            for name, spec, value in self._run_time_values()
            if spec.device not in ("", MOCK)
        ]
        if not arrays:
            return ""
        first, device, _ = next((found for found in arrays if found[1] != HOST), arrays[0])
        backend = backend_of(device)
        if backend is None:
            raise errors.DeviceMismatch(first, device, _in_words(HOST))
        for name, where, value in arrays:
            if where != device and not (where == HOST and _is_usable(value, backend)):
                raise errors.DeviceMismatch(name, _in_words(where), _in_words(device))
        return device

    @cached_property
    def backend(self) -> Backend:
        """The backend of that device; without arrays, the active one."""
        return backend_of(self.device) or driver.active.backend

    def run_time_arguments(self) -> list[tuple[str, Spec]]:
        """Name and Spec of each run-time argument, tuples flattened."""
        return [(name, spec) for name, spec, _ in self._run_time_values()]

    def host_arrays(self) -> list[Any]:
        """The arguments that are arrays in the memory of the host, tuples flattened."""
        pairs = run_time_pairs(self.keys, self.args)
        return [arg for spec, arg in pairs if spec.device == HOST and arg is not None]

    def _run_time_values(self) -> Iterator[tuple[str, Spec, Any]]:
        """The same with what is passed for it."""
        for param, key, value in zip(self.params, self.keys, self.values, strict=True):
            for spec, passed in run_time_pairs([key], [value]):
                yield param.name, spec, passed

    @cached_property
    def _split(self) -> tuple[dict[str, Any], dict[str, object]]:
        known = self.backend.options.names()
        options, meta = split_words(self.kernel, self.all_params, self.words, known)
        for param, arg in zip(self.params, self.args, strict=True):
            if param.is_constexpr and param.name in known and arg is not None:
                options[param.name] = arg
        return options, meta

    @property
    def options(self) -> dict[str, Any]:
        """Options of the backend, as given."""
        return self._split[0]

    @property
    def meta(self) -> dict[str, object]:
        """What the kernel's `**META` holds."""
        return self._split[1]

    def signature(self) -> KernelSignature:
        """The arguments in the words of the front end."""
        triples = zip(self.params, self.keys, self.values, strict=True)
        specs = [arg_spec(param, key, value) for param, key, value in triples]
        keywords = [param for param in self.all_params if param.is_keywords]
        for name, value in self.meta.items():
            specs.append(arg_spec(keywords[0].renamed(name), constant_key(value), value))
        return KernelSignature(tuple(specs))

    def check_runnable(self) -> None:
        """Raise UnsupportedArgument for a stand-in that has no memory."""
        for name, spec in self.run_time_arguments():
            if spec.device == MOCK:
                raise errors.UnsupportedArgument(
                    name, "MockTensor", "it has no memory; use it with kernel.warmup(...)"
                )

    def check_writable(self, stored: Sequence[int]) -> None:
        """Raise ReadOnlyArray if a read-only array is among the arguments stored through."""
        for position, (name, spec) in enumerate(self.run_time_arguments()):
            if spec.read_only and position in stored:
                raise errors.ReadOnlyArray(name, self.kernel)


def bind(
    kernel: str,
    params: Sequence[KernelParam],
    args: Sequence[object],
    rest: Sequence[object],
    words: Mapping[str, object],
) -> Call:
    """A launch, with `args` for the named parameters and further positional ones in `rest`.

    Errors: ArgumentCount, MissingArgument, UnknownArgument.
    """
    ordered = [param for param in params if not param.is_keywords]
    named = [param for param in ordered if not param.is_rest]
    missing = [p.name for p, arg in zip(named, args, strict=True) if arg is MISSING]
    if missing:
        # A misspelt keyword is why something is missing, and says more.
        refuse_unknown(kernel, params, words)
        raise errors.MissingArgument(kernel, tuple(missing))
    if rest and len(named) == len(ordered):
        count = sum(param.is_positional for param in named)
        raise errors.ArgumentCount(kernel, count, count + len(rest))
    given = dict(zip((param.name for param in named), args, strict=True))
    all_args = [rest if param.is_rest else given[param.name] for param in ordered]
    return Call(kernel, params, ordered, all_args, words)


def _hashable(value: object) -> bool:
    """Whether a keyword's value can stand for itself in a key."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _handled(param: KernelParam, arg: object) -> Handled:
    """As the generated launch function does it, with the parameter's name in errors."""
    try:
        if param.is_constexpr:
            return constant_key(arg), plain(arg)
        handler = special_handler(param)
        return HANDLERS.key_and_value(arg) if handler is None else handler(arg)
    except (errors.UnsupportedArgument, errors.DeviceMismatch) as problem:
        problem.argument = problem.argument or param.name
        raise


def _is_usable(address: int, backend: Backend) -> bool:
    """Whether kernels of a backend may use memory of the host."""
    memory = backend.memory
    return memory is not None and backend.available() and memory.usable(address)


def _in_words(device: str) -> str:
    return "the CPU" if device == HOST else device
