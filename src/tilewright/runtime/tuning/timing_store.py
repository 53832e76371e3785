"""Timings of autotuners on disk: <cache>/autotune/<kernel>-<hash>-<writer>.json.

A file is for one kernel, key and device, and for one process that measured, so that processes lose
no timings of each other; readers unite the files. They hold a timing for each configuration, so
timings remain valid when the list of configurations changes. A file is written after each
measurement. With a remote cache, other machines with such a device read it, too.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from types import FunctionType
from typing import Any, ClassVar

from tilewright.backends import Backend
from tilewright.compiler import package_content, package_version
from tilewright.runtime.jit import JITFunction
from tilewright.runtime.tuning.tuning_config import Config
from tilewright.support import ForkLock, import_late, settings
from tilewright.support.asynchronous_exceptions import suppress, synchronous
from tilewright.support.data_class import dataclass
from tilewright.support.disk_cache import Documents

Timing = list[float]

_DOCUMENTS = Documents("autotune")
_TIMINGS = "timings"
ABOUT = ("kernel", "key", "target", "source")
"""Members of a file that describe its choice."""
SOURCE_DIGITS = 16
"""Digits of the hash of a kernel in descriptions."""
_LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice among configurations. circumstances: texts of the device, the settings that change
    code, and the method of measurement; about: descriptions of the kernel, key and target"""

    kernel: JITFunction
    key: object
    backend: Backend
    circumstances: Sequence[str]
    about: Mapping[str, str]

    def name(self) -> str:
        """The start of the names of files on this machine."""
        return self._name(self.backend.version(self.backend.target()), package_version())

    def shared_name(self) -> str:
        """The name on all machines."""
        versions = self.backend.tool_versions(self.backend.target())
        return self._name(versions, package_content(self.backend.name))

    def _name(self, *versions: str) -> str:
        parts = [self.kernel.cache_key, repr(self.key), *self.circumstances, *versions]
        digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
        plain = re.sub(r"\W", "_", self.kernel.__name__, flags=re.ASCII)[:_LONGEST_NAME]
        return f"{plain}-{digest[:32]}"


class StoredTimings:
    """The timings for one choice. keywords: further keywords of the launch, which override those of
    the configurations"""

    def __init__(self, choice: Choice, keywords: Mapping[str, Any]) -> None:
        self._choice = choice
        self._name = choice.name()
        self._keywords = keywords

    def read(self, configs: Iterable[Config]) -> dict[Config, Timing]:
        """The timings of those configurations that have been measured."""
        stored: dict[str, Timing] = {}
        for name in _DOCUMENTS.named(self._name):
            stored.update(self._read(name))
        texts = self.texts(configs)
        if not stored.keys() >= {*texts.values()}:
            stored = {**_remote_timings(self._choice), **stored}
        return {config: stored[text] for config, text in texts.items() if text in stored}

    def from_tables(self, configs: Sequence[Config]) -> Config | None:
        """The choice by the tables of the settings; None: measure. Errors: AutotunerError."""
        tables = import_late("tilewright.runtime.tuning.tuning_tables")
        texts = {text: config for config, text in self.texts(configs).items()}
        chosen: str | None = tables.choose(self._choice.about, [*texts])
        if chosen is None:
            return None
        return texts[chosen] if chosen in texts else configs[0]

    def texts(self, configs: Iterable[Config]) -> dict[Config, str]:
        """Names of those configurations whose names are equal in all processes."""
        texts = {config: self._text(config) for config in configs}
        return {config: text for config, text in texts.items() if text is not None}

    def add(self, configs: Iterable[Config], timing: Timing) -> None:
        """Store the timing of some configurations; if the file cannot be written, they are measured
        again next time."""
        stored = self._write(dict.fromkeys(configs, timing))
        if stored:
            _publish(self._choice, _Writer.text(), stored)

    def add_all(self, timings: Mapping[Config, Timing]) -> None:
        """Store the timings that all processes of a group have, by one write.

        They are published under a hash of their content: with a name for each of n processes, n
        readers would read n members each.
        """
        if self._write(timings):
            rows = as_rows({text: timings[config] for config, text in self.texts(timings).items()})
            members = {**self._choice.about, _TIMINGS: dict(sorted(rows.items()))}
            digest = hashlib.sha256(repr(members).encode()).hexdigest()
            _publish(self._choice, digest[:32], members)

    def _write(self, timings: Mapping[Config, Timing]) -> dict[str, Any] | None:
        """Add timings to the file of this process; its content, None if there is nothing to add."""
        named = {text: timings[config] for config, text in self.texts(timings).items()}
        if not named:
            return None
        name = f"{self._name}-{_Writer.text()}"
        with _Writer.lock:  # another thread may add timings to the same file
            stored = {**self._read(name), **named}
            members = {**self._choice.about, _TIMINGS: as_rows(stored)}
            _DOCUMENTS.write(name, members)
        return members

    def _read(self, name: str) -> dict[str, Timing]:
        members = _DOCUMENTS.read(name)
        if members is None:
            return {}
        try:
            return from_rows(members[_TIMINGS])
        except synchronous(ValueError, KeyError, TypeError, AttributeError) as problem:
            _DOCUMENTS.discard(name, problem)
            return {}

    def _text(self, config: Config) -> str | None:
        """A name of a configuration that is equal in all processes; None if there is none."""
        text = config_text(config, self._keywords)
        return None if " at 0x" in text else text  # an address differs in the next process


class _Writer:
    """A name of this process, which no other has."""

    lock = ForkLock()
    process: ClassVar[int] = 0
    name: ClassVar[str] = ""

    @classmethod
    def text(cls) -> str:
        if cls.process != os.getpid():
            cls.process, cls.name = os.getpid(), f"{os.getpid()}-{os.urandom(4).hex()}"
        return cls.name


def _remote_timings(choice: Choice) -> dict[str, Timing]:
    """The timings that other machines have published."""
    if settings().cache.remote is None:
        return {}
    found: dict[str, Timing] = {}
    for members in _remote_timing_store().read(choice.shared_name()):
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            found.update(from_rows(members[_TIMINGS]))
    return found


def _publish(choice: Choice, writer: str, members: Mapping[str, Any]) -> None:
    if settings().cache.remote is not None:
        _remote_timing_store().publish(choice.shared_name(), writer, members)


def _remote_timing_store() -> Any:
    return import_late("tilewright.runtime.tuning.remote_timings")


@dataclass(frozen=True, slots=True)
class KeptTimings:
    """The timings of a kernel on disk, by the texts of configurations.

    key: values that chose them; target: where they were measured; source: hash of the kernel
    """

    kernel: str
    key: str
    target: str
    source: str
    timings: dict[str, Timing]


def kept_timings() -> list[KeptTimings]:
    """All timings on disk, by kernel and key; unreadable files are skipped."""
    found: dict[tuple[str, ...], KeptTimings] = {}
    for members in _DOCUMENTS.all():
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            about = tuple(str(members.get(name, "")) for name in ABOUT)
            choice = str(members["document"]).rsplit("-", 2)[0]
            kept = found.setdefault((*about, choice), KeptTimings(*about, timings={}))
            kept.timings.update(from_rows(members[_TIMINGS]))
    return sorted(found.values(), key=lambda kept: (kept.kernel, kept.key, kept.target))


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


def as_rows(timings: Mapping[str, Timing]) -> dict[str, list[float | None]]:
    """Timings as JSON."""
    return {text: [_as_json(ms) for ms in timing] for text, timing in timings.items()}


def from_rows(rows: Any) -> dict[str, Timing]:
    """The timings of JSON. Errors: ValueError, TypeError, AttributeError."""
    return {text: [_from_json(ms) for ms in timing] for text, timing in rows.items()}


def _as_json(ms: float) -> float | None:
    """JSON has no infinity, the timing of a configuration that cannot run."""
    return ms if math.isfinite(ms) else None


def _from_json(ms: float | None) -> float:
    return math.inf if ms is None else float(ms)
