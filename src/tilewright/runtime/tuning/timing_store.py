"""Timings of autotuners on disk: <cache>/autotune/<kernel>-<hash>.json.

A file is for one kernel, key and device. It holds a timing for each configuration that was ever
measured, so timings remain valid when the list of configurations changes. It is written after each
measurement.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from types import FunctionType
from typing import Any, cast

from tilewright.compiler import package_version
from tilewright.runtime.jit import JITFunction
from tilewright.runtime.tuning.tuning_config import Config
from tilewright.support.asynchronous_exceptions import suppress, synchronous
from tilewright.support.data_class import dataclass
from tilewright.support.disk_cache import Documents

Timing = list[float]

_DOCUMENTS = Documents("autotune")
_TIMINGS = "timings"
_ABOUT = ("kernel", "key", "target")


def choice_name(kernel: JITFunction, key: object, circumstances: Sequence[str]) -> str:
    """The name of the file of timings for a key.

    circumstances: texts of the device, the version of its backend, the settings that change code,
    and the method of measurement
    """
    parts = [
        kernel.cache_key,
        repr(key),
        *circumstances,
        package_version(),
    ]
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    return f"{kernel.__name__}-{digest[:32]}"


class StoredTimings:
    """The timings in one file. keywords: further keywords of the launch, which override those of
    the configurations; about: descriptions of the kernel, key and target for `kept_timings`."""

    def __init__(
        self, name: str, keywords: Mapping[str, Any], about: Mapping[str, str] | None = None
    ) -> None:
        self._name = name
        self._keywords = keywords
        self._about = about or {}

    def read(self, configs: Iterable[Config]) -> dict[Config, Timing]:
        """The timings of those configurations that have been measured."""
        stored = self._read()
        texts = {config: self._text(config) for config in configs}
        return {config: stored[text] for config, text in texts.items() if text in stored}

    def add(self, configs: Iterable[Config], timing: Timing) -> None:
        """Store the timing of some configurations; if the file cannot be written, they are measured
        again next time."""
        self.add_all(dict.fromkeys(configs, timing))

    def add_all(self, timings: Mapping[Config, Timing]) -> None:
        """Store several timings by one write."""
        texts = {self._text(config): timing for config, timing in timings.items()}
        named = {text: timing for text, timing in texts.items() if text is not None}
        if named:
            # read again, since another process may have added timings
            stored = {**self._read(), **named}
            rows = {text: [_as_json(ms) for ms in timing] for text, timing in stored.items()}
            _DOCUMENTS.write(self._name, {**self._about, _TIMINGS: rows})

    def _read(self) -> dict[str, Timing]:
        members = _DOCUMENTS.read(self._name)
        if members is None:
            return {}
        try:
            rows = cast("dict[str, list[float | None]]", members[_TIMINGS])
            return {text: [_from_json(ms) for ms in timing] for text, timing in rows.items()}
        except synchronous(ValueError, KeyError, TypeError, AttributeError) as problem:
            _DOCUMENTS.discard(self._name, problem)
            return {}

    def _text(self, config: Config) -> str | None:
        """A name of a configuration that is equal in all processes; None if there is none."""
        text = config_text(config, self._keywords)
        return None if " at 0x" in text else text  # an address differs in the next process


@dataclass(frozen=True, slots=True)
class KeptTimings:
    """The timings of a kernel on disk, by the texts of configurations.

    key: values that chose them; target: where they were measured
    """

    kernel: str
    key: str
    target: str
    timings: dict[str, Timing]


def kept_timings() -> list[KeptTimings]:
    """All timings on disk, by kernel and key; unreadable files are skipped."""
    found: list[KeptTimings] = []
    for members in _DOCUMENTS.all():
        with suppress(KeyError, TypeError, AttributeError):
            kernel, key, target = (str(members.get(name, "")) for name in _ABOUT)
            rows = {text: list(map(_from_json, row)) for text, row in members[_TIMINGS].items()}
            found.append(KeptTimings(kernel, key, target, rows))
    return sorted(found, key=lambda kept: (kept.kernel, kept.key, kept.target))


def config_text(config: Config, keywords: Mapping[str, Any] | None = None) -> str:
    """A configuration with all that distinguishes it. keywords: of the launch, which override
    it."""
    chosen = {**config.all_kwargs(), **(keywords or {})}
    texts = [f"{name}: {_value_text(value)}" for name, value in chosen.items()]
    if config.pre_hook is not None:
        texts.append(f"pre_hook: {_value_text(config.pre_hook)}")
    return ", ".join(texts)


def _value_text(value: object) -> str:
    if isinstance(value, JITFunction):
        return value.cache_key
    if isinstance(value, FunctionType):
        # not repr, which contains the address of a function
        code = hashlib.sha256(value.__code__.co_code).hexdigest()
        return f"{value.__module__}.{value.__qualname__} {code[:16]}"
    return repr(value)


def _as_json(ms: float) -> float | None:
    """JSON has no infinity, the timing of a configuration that cannot run."""
    return ms if math.isfinite(ms) else None


def _from_json(ms: float | None) -> float:
    return math.inf if ms is None else float(ms)
