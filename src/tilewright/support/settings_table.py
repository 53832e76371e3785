"""Every setting that the environment controls; this module is its only reader.

    settings().compilation.verify            # read: assignment, environment or default
    settings().compilation.verify = False    # assign: from now on, for this process
    with settings().compilation.scope(verify=False): ...    # assign for a block

A setting is read from the environment each time, so a test may monkeypatch `os.environ` at any
time. Where Triton has the same switch, its variable is accepted too, after the own one. Settings
that change generated code are part of `Settings.cache_key`.
"""

import os
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Generic, Self, TypeVar, cast, overload

from tilewright.support import setting_kinds
from tilewright.support.asynchronous_exceptions import synchronous
from tilewright.support.data_class import dataclass
from tilewright.support.errors import BadSetting
from tilewright.support.fork_locks import fork_waits
from tilewright.support.operating_system import user_number
from tilewright.support.setting_kinds import FLAG, FOLDER, SECONDS, Kind

T = TypeVar("T")


class Setting(Generic[T]):
    """One setting: a descriptor on a `Group`.

    variables: environment variables in order of precedence; in_key: whether the value changes code;
    factory: computes a default that is not constant
    """

    def __init__(
        self,
        default: T,
        kind: Kind[T],
        *variables: str,
        doc: str,
        in_key: bool = False,
        factory: Callable[[], T] | None = None,
    ) -> None:
        self.variables = variables
        self.kind = kind
        self.in_key = in_key
        self.name = ""
        self.__doc__ = doc
        self._default = default
        self._factory = factory

    def __set_name__(self, owner: type["Group"], name: str) -> None:
        self.name = name

    @overload
    def __get__(self, group: None, owner: type["Group"]) -> Self: ...
    @overload
    def __get__(self, group: "Group", owner: type["Group"]) -> T: ...
    def __get__(self, group: "Group | None", owner: type["Group"]) -> Self | T:
        """The value now; raises `BadSetting` for an environment variable that cannot be parsed."""
        if group is None:
            return self
        assigned = group.__dict__
        if self.name in assigned:
            return assigned[self.name]
        return self.from_environment()

    def __set__(self, group: "Group", value: T) -> None:
        """Assign a value that overrides the environment until `Group.reset`."""
        group.__dict__[self.name] = value

    def from_environment(self) -> T:
        """The value without assignments."""
        for variable in self.variables:
            text = os.environ.get(variable)
            # an empty variable counts as unset
            if text:
                return self._parsed(variable, text)
        return self.default()

    def default(self) -> T:
        """The value without assignment and environment."""
        return self._default if self._factory is None else self._factory()

    def _parsed(self, variable: str, text: str) -> T:
        try:
            return self.kind.parse(text)
        except synchronous(ValueError):
            raise BadSetting(variable, self.kind.expected, text) from None


class FolderSetting(Setting[T]):
    """A folder or files; a relative path starts at the working folder of its first read or
    assignment. Otherwise `os.chdir` would change it.
    """

    _read: tuple[T, T] | None = None
    """The value of the environment, and with absolute paths for as long as it is the same."""

    def __set__(self, group: "Group", value: T) -> None:
        """Assign a value that overrides the environment until `Group.reset`."""
        super().__set__(group, _absolute(value))

    def from_environment(self) -> T:
        """The value without assignments."""
        value = super().from_environment()
        if self._read is None or self._read[0] != value:
            self._read = value, _absolute(value)
        return self._read[1]


def _absolute(value: T) -> T:
    if isinstance(value, tuple):
        return cast("T", tuple(map(_absolute, cast("tuple[object, ...]", value))))
    return cast("T", value.absolute()) if isinstance(value, Path) else value


class Group:
    """Settings of one subject."""

    @classmethod
    def all(cls) -> Iterator[Setting[object]]:
        """The group's settings, in the order of the class body."""
        members: dict[str, object] = dict(vars(cls))
        for item in members.values():
            if isinstance(item, Setting):
                yield cast("Setting[object]", item)

    def reset(self, *names: str) -> None:
        """Drop the assignments of `names`, or all of them."""
        for name in names or tuple(self.__dict__):
            self.__dict__.pop(name, None)

    @contextmanager
    def scope(self, **values: object) -> Generator[Self]:
        """Assign `values` for a block, and restore every assignment of the group afterwards."""
        names = {setting.name for setting in self.all()}
        unknown = values.keys() - names
        if unknown:
            raise AttributeError(f"{type(self).__name__} has no setting {sorted(unknown)}")
        before = dict(self.__dict__)
        try:
            for name, value in values.items():
                setattr(self, name, value)
            yield self
        finally:
            # in place: launch functions hold this dictionary to check for assignments
            self.__dict__.clear()
            self.__dict__.update(before)


def environment_text(variable: str, default: str | None = None) -> str | None:
    """The text of an environment variable that is not a setting of this package."""
    return os.environ.get(variable, default)


def environment_flag(variable: str, default: bool | None = False) -> bool | None:
    """The flag in an environment variable. Errors: BadSetting."""
    text = os.environ.get(variable)
    try:
        return setting_kinds.flag(text) if text else default
    except synchronous(ValueError):
        raise BadSetting(variable, FLAG.expected, text or "") from None


def environment_with(**defaults: str) -> dict[str, str]:
    """The environment for a new process, with variables for settings that are not set."""
    return {**defaults, **os.environ}


def environment_of_python() -> dict[str, str]:
    """The environment for a new process of this Python, which finds the modules of this one."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def set_environment(variable: str, text: str | None) -> None:
    """Set an environment variable for this process and its children; None unsets it."""
    if text is None:
        os.environ.pop(variable, None)
    else:
        os.environ[variable] = text


def _user_cache() -> Path:
    if os.environ.get("TRITON_HOME"):
        return _triton_folder("cache")
    # the variables are arguments, so that the folder is valid for this environment only
    return _platform_cache(*(os.environ.get(name) for name in _VARIABLES_OF_PLATFORMS))


def _triton_folder(name: str) -> Path:
    """A folder of Triton's: below TRITON_HOME, or the user's home."""
    return setting_kinds.path(os.environ.get("TRITON_HOME") or "~") / ".triton" / name


def _triton_folder_if(variable: str, name: str) -> Path | None:
    """`_triton_folder`, if a flag is set."""
    return _triton_folder(name) if environment_flag(variable) else None


_PACKAGE = "tilewright"
_VARIABLES_OF_PLATFORMS = ("XDG_CACHE_HOME", "HOME", "LOCALAPPDATA")


@lru_cache
def _platform_cache(*variables: str | None) -> Path:
    """The platform's folder for caches of users; without a home, the folder for temporary files."""
    with fork_waits():  # a slow import, which a program with a named folder does not need
        import tempfile

        from platformdirs import user_cache_path
    try:
        folder = user_cache_path(_PACKAGE, appauthor=False)
    except synchronous(RuntimeError):  # neither the environment nor the system has a home
        folder = Path()
    # a relative path would depend on the working folder
    if folder.is_absolute():
        return folder
    user = user_number()
    return Path(tempfile.gettempdir()) / f"{_PACKAGE}-{'user' if user is None else user}"


TABLE_FALLBACKS = ("measure", "first", "error")
"""Choices of configurations for launches that no table of timings covers."""
ON_MISS = ("compile", "generic", "error", "log")
"""Treatments of launches whose variant is not in memory."""
BULK_LOADS = ("none", "descriptors", "all")
"""Loads that TMA may execute: each choice includes those before it."""
_PRECISIONS = ("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6")


class Interpreter(Group):
    """The interpreter, in which kernels run as Python functions."""

    enabled = Setting(
        False,
        FLAG,
        "TILEWRIGHT_INTERPRET",
        "TRITON_INTERPRET",
        doc="Interpret kernels instead of compiling them; read where a kernel is decorated.",
    )
    check = Setting(
        "",
        Kind(str, "some of bounds, race, overflow, uninit, with commas"),
        "TILEWRIGHT_CHECK",
        doc="Check every access of kernels on host arrays, compiled or interpreted; read where a "
        "kernel is decorated.",
    )
    program_id = Setting[tuple[int, int, int] | None](
        None,
        Kind(setting_kinds.program_id, "one to three comma-separated numbers, such as 3,0,0"),
        "TILEWRIGHT_INTERPRET_PID",
        doc="Run only this program instance of the grid, for debugging.",
    )


class Compilation(Group):
    """Compilation of kernels."""

    debug = Setting(
        False,
        FLAG,
        "TILEWRIGHT_DEBUG",
        "TRITON_DEBUG",
        doc="Keep device_assert in all kernels, and show the compiler's frames in tracebacks.",
        in_key=True,
    )
    verify = Setting(
        False,
        FLAG,
        "TILEWRIGHT_VERIFY",
        doc="Verify the IR after every pass that changes it, not only after the last.",
    )
    f32_default = Setting[str | None](
        None,
        setting_kinds.one_of(_PRECISIONS),
        "TILEWRIGHT_F32_DEFAULT",
        "TRITON_F32_DEFAULT",
        doc="Precision of float32 dot products that do not name one; the backend's own if unset.",
        in_key=True,
    )
    line_info = Setting(
        True,
        FLAG,
        "TILEWRIGHT_LINE_INFO",
        doc="Line tables in machine code, so that profilers and debuggers show the source; "
        "TRITON_DISABLE_LINE_INFO=1 turns them off too.",
        in_key=True,
        factory=lambda: not environment_flag("TRITON_DISABLE_LINE_INFO"),
    )
    log_recompiles = Setting(
        False,
        FLAG,
        "TILEWRIGHT_LOG_RECOMPILES",
        doc="Report on standard error why a kernel is compiled again: argument and property.",
    )
    fp_fusion = Setting(
        True,
        FLAG,
        "TILEWRIGHT_DEFAULT_FP_FUSION",
        "TRITON_DEFAULT_FP_FUSION",
        doc="Fuse multiply and add unless a launch sets enable_fp_fusion. "
        "TRITON_FORCE_DISABLE_FP_FUSION=1 turns it off too.",
        factory=lambda: not environment_flag("TRITON_FORCE_DISABLE_FP_FUSION"),
        in_key=True,
    )
    bulk_loads = Setting(
        BULK_LOADS[-1],
        setting_kinds.one_of(BULK_LOADS),
        "TILEWRIGHT_BULK_LOADS",
        doc="Loads that TMA may execute where a launch does not specify them: all, those "
        "by tensor descriptors, or none.",
        in_key=True,
    )
    override_arch = Setting[str | None](
        None,
        Kind(setting_kinds.arch, "an architecture such as sm90"),
        "TILEWRIGHT_OVERRIDE_ARCH",
        "TRITON_OVERRIDE_ARCH",
        doc="Compile for this architecture instead of the device's.",
        in_key=True,
    )
    dump_dir = FolderSetting[Path | None](
        None,
        FOLDER,
        "TILEWRIGHT_DUMP_DIR",
        "TRITON_DUMP_DIR",
        doc="Write every stage of every compiled kernel below this folder; TRITON_KERNEL_DUMP=1 "
        "means dump in TRITON_HOME/.triton.",
        factory=lambda: _triton_folder_if("TRITON_KERNEL_DUMP", "dump"),
    )
    override_dir = FolderSetting[Path | None](
        None,
        FOLDER,
        "TILEWRIGHT_OVERRIDE_DIR",
        "TRITON_OVERRIDE_DIR",
        doc="Read a stage of a kernel from a file here, named as in the dumps, if there is one; "
        "TRITON_KERNEL_OVERRIDE=1 means override in TRITON_HOME/.triton.",
        factory=lambda: _triton_folder_if("TRITON_KERNEL_OVERRIDE", "override"),
    )


class Cache(Group):
    """Compiled kernels on disk and in memory."""

    dir = FolderSetting(
        Path(),
        FOLDER,
        "TILEWRIGHT_CACHE_DIR",
        "TRITON_CACHE_DIR",
        doc="Folder of the disk cache, which only the user may write to; if unset, where the "
        "platform keeps caches: below XDG_CACHE_HOME or ~/.cache, in ~/Library/Caches on macOS; "
        "or cache in TRITON_HOME/.triton, if that is set.",
        factory=_user_cache,
    )
    always_compile = Setting(
        False,
        FLAG,
        "TILEWRIGHT_ALWAYS_COMPILE",
        "TRITON_ALWAYS_COMPILE",
        doc="Do not read the disk cache.",
    )
    max_megabytes = Setting(
        2048,
        Kind(setting_kinds.count, "a number of megabytes, 0 for no limit"),
        "TILEWRIGHT_CACHE_MB",
        doc="Maximum size of the disk cache; the least recently used files are deleted first.",
    )
    remote = Setting[str | None](
        None,
        Kind(setting_kinds.url, "a URL such as file:///nfs/cache or redis://host:6379/0"),
        "TILEWRIGHT_REMOTE_CACHE",
        doc="URL of a cache of kernels and timings that machines share: a folder, a Redis server, "
        "or a file system of fsspec. The disk cache is read first.",
    )
    remote_trust = Setting(
        False,
        FLAG,
        "TILEWRIGHT_REMOTE_CACHE_TRUST",
        doc="Run kernels from the remote cache without a signature: whoever may write to it can "
        "run code here.",
    )
    remote_key = FolderSetting[Path | None](
        None,
        Kind(setting_kinds.path, "a file"),
        "TILEWRIGHT_REMOTE_CACHE_KEY",
        doc="File of a key that all users of the remote cache share: only what is signed by it is "
        "read.",
    )
    on_miss = Setting(
        ON_MISS[0],
        setting_kinds.one_of(ON_MISS),
        "TILEWRIGHT_ON_MISS",
        doc="What a launch does whose variant is not in memory: compile it; use one without facts "
        "while a worker compiles it; raise an error; compile it and print a line.",
    )
    record = FolderSetting[Path | None](
        None,
        Kind(setting_kinds.path, "a file"),
        "TILEWRIGHT_RECORD",
        doc="Append each variant that is launched to this spec file, which `tilewright precompile` "
        "compiles.",
    )
    max_variants = Setting(
        1000,
        Kind(setting_kinds.count, "a number of variants, 0 for no limit"),
        "TILEWRIGHT_MAX_VARIANTS",
        doc="Variants of one kernel that stay in memory; above it, the least recently launched are "
        "dropped, and read from disk when they are launched again.",
    )


class Autotuning(Group):
    """The autotuner."""

    tables = FolderSetting[tuple[Path, ...]](
        (),
        Kind(setting_kinds.paths, f"files, with {os.pathsep} between them"),
        "TILEWRIGHT_TUNING_TABLES",
        doc="Tables of timings, written by `tilewright tuning export`, that choose configurations "
        "without measuring; later files override earlier ones.",
    )
    fallback = Setting(
        TABLE_FALLBACKS[0],
        setting_kinds.one_of(TABLE_FALLBACKS),
        "TILEWRIGHT_TUNING_FALLBACK",
        doc="For launches that no table covers: measure, use the first configuration, or raise an "
        "error. A warning names each.",
    )
    print = Setting(
        False,
        FLAG,
        "TILEWRIGHT_PRINT_AUTOTUNING",
        "TRITON_PRINT_AUTOTUNING",
        doc="Print each chosen configuration, all timings, and how long the choice took.",
    )
    cache = Setting(
        True,
        FLAG,
        "TILEWRIGHT_CACHE_AUTOTUNING",
        "TRITON_CACHE_AUTOTUNING",
        doc="Store timings on disk.",
    )
    seconds = Setting(
        300.0,
        SECONDS,
        "TILEWRIGHT_AUTOTUNE_SECONDS",
        doc="Time for one choice; afterwards, the best configuration so far is used.",
    )


class Cpu(Group):
    """The CPU backend."""

    threads = Setting(
        0,
        Kind(setting_kinds.count, "a number of threads, 0 for all"),
        "TILEWRIGHT_CPU_THREADS",
        doc="Threads that run a grid; 0 uses every CPU that this process may use.",
    )
    wait_seconds = Setting(
        30.0,
        SECONDS,
        "TILEWRIGHT_WAIT_SECONDS",
        doc="Time that programs may wait for each other, by polling memory, while none ends; "
        "read before the first launch.",
    )
    crash_reports = Setting(
        True,
        FLAG,
        "TILEWRIGHT_CRASH_REPORTS",
        doc="Handle SIGSEGV, SIGBUS, SIGABRT, SIGILL and SIGFPE from the first launch on, to name "
        "on stderr the kernel that crashes the process, or those that were launched last.",
    )
    perf = Setting(
        False,
        FLAG,
        "TILEWRIGHT_PERF",
        doc="Describe each loaded kernel in `/tmp/perf-PID.map` and `jit-PID.dump`, by which "
        "Linux's `perf` shows names and lines of kernels.",
    )


class Cuda(Group):
    """The NVIDIA backend."""

    ptxas_path = Setting[Path | None](
        None,
        Kind(setting_kinds.path, "a program"),
        "TILEWRIGHT_PTXAS_PATH",
        "TRITON_PTXAS_PATH",
        doc="The assembler for PTX; searched for in PATH, the CUDA toolkit and wheels if unset.",
    )
    home = Setting[Path | None](
        None,
        FOLDER,
        "CUDA_HOME",
        "CUDA_PATH",
        doc="Folder of the CUDA toolkit.",
    )
    launch_blocking = Setting(
        False,
        FLAG,
        "TILEWRIGHT_LAUNCH_BLOCKING",
        "CUDA_LAUNCH_BLOCKING",
        doc="Wait after each launch, so that a fault is reported by the launch that caused it.",
    )


@dataclass(frozen=True)
class Settings:
    """All groups. The process has one instance: `settings()`."""

    interpreter: Interpreter
    compilation: Compilation
    cache: Cache
    autotuning: Autotuning
    cpu: Cpu
    cuda: Cuda

    def groups(self) -> Iterator[tuple[str, Group]]:
        """Name and object of each group."""
        return iter(vars(self).items())

    def in_key(self) -> dict[str, dict[str, object]]:
        """The values of all settings that change generated code, by group and name."""
        return {
            name: {one.name: getattr(group, one.name) for one in group.all() if one.in_key}
            for name, group in self.groups()
        }

    def cache_key(self) -> str:
        """The values of all settings that change generated code, as one line of text."""
        return ";".join(
            f"{group}.{name}={value}"
            for group, values in self.in_key().items()
            for name, value in values.items()
        )


_settings = Settings(Interpreter(), Compilation(), Cache(), Autotuning(), Cpu(), Cuda())


def settings() -> Settings:
    """The settings of this process."""
    return _settings


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One line of the table of settings, for the command line and the reference page."""

    name: str
    variables: tuple[str, ...]
    value: object
    default: object
    in_key: bool
    doc: str


def setting_rows() -> list[SettingRow]:
    """A row for each setting with its present value."""
    return [
        SettingRow(
            f"{group_name}.{setting.name}",
            setting.variables,
            getattr(group, setting.name),
            setting.default(),
            setting.in_key,
            setting.__doc__ or "",
        )
        for group_name, group in settings().groups()
        for setting in group.all()
    ]
