"""TW2xx to TW9xx: mistakes around a kernel: launch, backend, run, tuning; and compiler bugs."""

from collections.abc import Iterable

from tilewright.support.data_class import dataclass
from tilewright.support.errors.user_error import TilewrightError, did_you_mean, listed, with_article

# --- TW2xx: in a launch ---------------------------------------------------------------------------


@dataclass(eq=False)
class LaunchError(TilewrightError):
    """Base of the mistakes in how a kernel is launched."""

    code = "TW200"


@dataclass(eq=False)
class UnsupportedArgument(LaunchError, TypeError):
    """A kernel argument of a type that cannot be passed."""

    code = "TW201"
    template = "argument '{argument}' is {what}, which a kernel cannot take"
    hint_template = "{instead}"

    argument: str
    found: str
    instead: str = "pass an array, a number, a tuple of these, or a constexpr"

    @property
    def what(self) -> str:
        """`found` with its article."""
        return with_article(self.found)


@dataclass(eq=False)
class IntegerTooLarge(UnsupportedArgument, OverflowError):
    """An integer of more than 64 bits."""

    code = "TW226"


@dataclass(eq=False)
class ReadOnlyArray(LaunchError, ValueError):
    """A read-only array for a parameter that the kernel stores to."""

    code = "TW202"
    template = "argument '{argument}' is a read-only array, but {kernel} stores to it"
    hint_template = "{instead}"

    argument: str
    kernel: str
    instead: str = "pass a writable copy"


@dataclass(eq=False)
class DeviceMismatch(LaunchError, ValueError):
    """An array on another device than the kernel runs on."""

    code = "TW203"
    template = "argument '{argument}' is on {device}, but the kernel runs on {expected}"
    hint_template = "move all arrays of a launch to one device"

    argument: str
    device: str
    expected: str


@dataclass(eq=False)
class BadGrid(LaunchError, ValueError):
    """A grid that is not one to three non-negative integers."""

    code = "TW204"
    template = "the grid {grid} {problem}"
    hint_template = (
        "a grid is 1 to 3 integers, none of them negative, or a function that returns them"
    )

    grid: object
    problem: str


@dataclass(eq=False)
class InvalidOption(LaunchError, ValueError):
    """A launch option (`num_warps`, `num_stages` ...) with an invalid value."""

    code = "TW205"
    template = "option '{option}' must be {expected}, found {found}"

    option: str
    expected: str
    found: object

    @property
    def triton_words(self) -> str | None:
        """The assertion of Triton's options."""
        expected = self.expected.replace("power of two", "power of 2")
        return self.triton or f"{self.option} must be {expected}"


@dataclass(eq=False)
class InvalidDescriptor(LaunchError, ValueError):
    """A `TensorDescriptor` that describes no array, or one that TMA cannot read."""

    code = "TW213"
    template = "TensorDescriptor: '{part}' must be {expected}, found {found}"

    part: str
    expected: str
    found: object


@dataclass(eq=False)
class ChangedGlobal(LaunchError, RuntimeError):
    """A global that has changed since a kernel was compiled with its value."""

    code = "TW206"
    template = "global '{variable}' was {before} when {kernel} was compiled and is {now} now"
    triton_template = (
        "Global variable {variable} has changed since we compiled "
        "this kernel, from {before!r} to {now!r}"
    )
    hint_template = "pass it as a constexpr parameter"

    variable: str
    kernel: str
    before: object
    now: object


@dataclass(eq=False)
class ConflictingGlobal(LaunchError, RuntimeError):
    """A global that has changed between two kernels that call one function."""

    code = "TW224"
    template = (
        "global '{variable}' was {before} when {function} was first compiled and is {now} now"
    )
    triton_template = "Global variable {variable} has value {now!r}, {function} saw {before!r}"
    hint_template = "pass it to {function} as a constexpr parameter"

    variable: str
    function: str
    before: object
    now: object


@dataclass(eq=False)
class BadSetting(LaunchError, ValueError):
    """An environment variable with an invalid value."""

    code = "TW207"
    template = "{variable} must be {expected}, found {found!r}"

    variable: str
    expected: str
    found: str


@dataclass(eq=False)
class RefusedKeyword(LaunchError, TypeError):
    """A keyword that is valid elsewhere, but not in a launch."""

    code = "TW208"
    template = "{kernel}[grid]() takes no '{keyword}'"
    hint_template = "{instead}"

    kernel: str
    keyword: str
    instead: str


@dataclass(eq=False)
class UnknownName(LaunchError, ValueError):
    """A name of an option, a pass, a backend ... that does not exist."""

    code = "TW209"
    template = "there is no {kind} '{name}'{of}"

    kind: str
    name: str
    candidates: Iterable[str] = ()
    owner: str = ""

    @property
    def of(self) -> str:
        """The owner of the names, if they have one."""
        return f" of {self.owner}" if self.owner else ""

    @property
    def hint(self) -> str | None:
        """The closest names, or all of them."""
        names = sorted(self.candidates)
        return did_you_mean(self.name, names) or f"there are {listed(names)}"


@dataclass(eq=False)
class BadCallback(LaunchError, TypeError):
    """A function of the user with the wrong signature. takes: the arguments of its calls"""

    code = "TW210"
    template = "{what} cannot be called: {problem}"
    hint_template = "it is called with {takes}"

    what: str
    problem: str
    takes: str


@dataclass(eq=False)
class NotAKernel(LaunchError, TypeError):
    """An object that a decorator of kernels does not accept."""

    code = "TW212"
    template = "{decorator} takes {takes}, found {found}"
    hint_template = "{instead}"

    decorator: str
    takes: str
    found: str
    instead: str


@dataclass(eq=False)
class TritonIsImported(LaunchError, ImportError):
    """A call of `as_triton()` after Triton itself was imported."""

    code = "TW220"
    template = "triton {version} is imported already, from {place}"
    hint_template = (
        "call tilewright.as_triton() before anything imports triton, as torch and libraries of "
        "kernels may; or start the program by `tilewright run-script FILE`"
    )

    version: str
    place: str


@dataclass(eq=False)
class TritonIsInstalled(LaunchError):
    """An installation of the package `triton` into a folder that has another one."""

    code = "TW222"
    template = "triton {version} is installed in {place}"
    hint_template = (
        "remove it (pip uninstall triton), or leave it and install into a folder of its own, "
        "which PYTHONPATH names where Tilewright is wanted: `tilewright as-triton install "
        "--target FOLDER`"
    )

    version: str
    place: str


@dataclass(eq=False)
class MissingInTriton(LaunchError, ModuleNotFoundError):
    """A module or name of Triton that Tilewright lacks, used under `as_triton()`.

    reason: the part of Triton's interface that it belongs to
    """

    code = "TW221"
    template = "{wanted} is not in Tilewright: {reason}"

    wanted: str
    reason: str


@dataclass(eq=False)
class OtherSpecialization(LaunchError, RuntimeError):
    """Specialization data of another kernel's variant."""

    code = "TW225"
    template = "the specialization data is of {found}, not of {kernel}"
    triton_template = "Specialization data is for {found} but trying to preload for {kernel}"

    found: str
    kernel: str


@dataclass(eq=False)
class UnsupportedTorch(LaunchError, RuntimeError):
    """A PyTorch whose Inductor uses parts of Triton that Tilewright lacks."""

    code = "TW223"
    template = "torch.compile is not supported for PyTorch {version}, only for {wanted}"
    hint_template = "install PyTorch {wanted}; without torch.compile, kernels run with any version"

    version: str
    supported: Iterable[str]

    @property
    def wanted(self) -> str:
        """The supported versions, as printed."""
        return ", ".join(self.supported)


# --- TW3xx: backends and tools --------------------------------------------------------------------


@dataclass(eq=False)
class BackendError(TilewrightError):
    """Base of the errors of backends and external tools."""

    code = "TW300"


@dataclass(eq=False)
class OutOfResources(BackendError):
    """A kernel that exceeds a resource of the device. name: the resource"""

    code = "TW301"
    template = "the kernel needs {required} of {name}; the limit is {limit}"
    triton_template = "out of resource: {name}, Required: {required}, Hardware limit: {limit}"
    hint_template = "reduce block sizes or num_stages"

    required: int
    limit: int
    name: str


@dataclass(eq=False)
class PTXASError(BackendError):
    """PTX that the assembler rejects."""

    code = "TW302"
    template = "ptxas failed: {detail}"
    triton_template = "PTXAS error: {detail}"

    detail: str


@dataclass(eq=False)
class LoweringMissing(BackendError, NotImplementedError):
    """An operation that the backend cannot lower, perhaps only in this layout."""

    code = "TW303"
    template = "backend '{backend}' has no lowering for '{op}'{where}"

    op: str
    backend: str
    layout: object = None

    @property
    def where(self) -> str:
        """The layout, as printed, if the operation has one."""
        return "" if self.layout is None else f" in layout {self.layout}"


@dataclass(eq=False)
class BackendUnavailable(BackendError, RuntimeError):
    """A backend that this machine cannot run."""

    code = "TW304"
    template = "backend '{backend}' cannot run here: {reason}"
    hint_template = "{instead}"

    backend: str
    reason: str
    instead: str = ""


@dataclass(eq=False)
class UnknownTarget(BackendError, ValueError):
    """A target that no backend serves."""

    code = "TW305"
    template = "no backend serves target '{target}'{why}"

    target: str
    candidates: Iterable[str] = ()
    reason: str = ""

    @property
    def why(self) -> str:
        """The reason as a clause of the message."""
        return f": {self.reason}" if self.reason else ""

    @property
    def hint(self) -> str | None:
        """The supported targets."""
        return f"known targets: {listed(self.candidates)}"


@dataclass(eq=False)
class ToolMissing(BackendError, RuntimeError):
    """A missing external program. searched: the places where it was looked for"""

    code = "TW306"
    template = "'{tool}' was not found; looked in {searched}"
    hint_template = "{instead}"

    tool: str
    searched: str
    instead: str = ""


@dataclass(eq=False)
class NotExplained(BackendError, NotImplementedError):
    """A call of `explain` for a backend that does not report how it lowers ops."""

    code = "TW307"
    template = "backend '{backend}' does not explain kernels"
    hint_template = "compile for target cpu or sm_90, which are explained; no device is needed"

    backend: str


@dataclass(eq=False)
class NotInLibrary(BackendError, RuntimeError):
    """A kernel that a program without Python, such as AOTInductor's, cannot launch."""

    code = "TW308"
    template = "a kernel cannot be launched by C++ alone: {reason}"

    reason: str


@dataclass(eq=False)
class InvalidBundle(BackendError, ValueError):
    """Kernels that cannot be in a bundle, which a program without Python runs."""

    code = "TW309"
    template = "'{kernel}' cannot be in a bundle: {problem}"

    kernel: str
    problem: str


# --- TW4xx: while a kernel runs -------------------------------------------------------------------


@dataclass(eq=False)
class KernelRunError(TilewrightError, RuntimeError):
    """Base of the errors that are found while a kernel runs."""

    code = "TW400"


@dataclass(eq=False)
class InterpreterError(KernelRunError):
    """An operation that the interpreter cannot compute or finds to be wrong."""

    code = "TW401"
    template = "{detail}"

    detail: str


@dataclass(eq=False)
class OutOfBounds(InterpreterError, IndexError):
    """An access outside every array of the launch. detail: its address"""

    code = "TW402"
    template = "out-of-bounds access: {detail}"
    hint_template = "mask the load or store"


@dataclass(eq=False)
class NegativeTileIndex(KernelRunError, ValueError):
    """A negative tile index under `%`, which compiled code assumes to be non-negative."""

    code = "TW404"
    template = "a tile index under % is {number}; compiled kernels assume that none is negative"
    hint_template = (
        "it is computed from program ids by a quotient: divide by a number of tiles, which is "
        "above 0, and launch no more programs than there are tiles"
    )

    number: int


@dataclass(eq=False)
class RaceCondition(KernelRunError):
    """Two programs that access one address without atomics, at least one of them by a store."""

    code = "TW405"
    template = "race condition: {detail}"
    hint_template = "let each program store to elements of its own, or use atomics"

    detail: str


@dataclass(eq=False)
class Deadlock(KernelRunError):
    """A program that polls memory which no remaining program can store to."""

    code = "TW408"
    template = (
        "program {program} waits without end: it polls {place}, and no program is left to store "
        "to it"
    )
    hint_template = "check that each lock is released, and that a program stores the awaited value"

    program: tuple[int, ...]
    place: str


@dataclass(eq=False)
class OffsetOverflow(KernelRunError, OverflowError):
    """An offset whose int32 arithmetic has wrapped around."""

    code = "TW406"
    template = "int32 overflow in the offset of a {access}"
    hint_template = "compute offsets in int64: x.to(tl.int64), or int64_offsets=True"

    access: str


@dataclass(eq=False)
class EndlessWait(KernelRunError):
    """A program on a CPU that polls memory in a loop, while no program makes progress."""

    code = "TW409"
    template = (
        "a program of '{kernel}' has waited for {seconds} s for another one, and none has ended"
    )
    hint_template = (
        "programs start in order, as many at a time as there are threads: wait for earlier "
        "programs only, or launch fewer; TILEWRIGHT_WAIT_SECONDS is the limit"
    )

    kernel: str
    seconds: str


@dataclass(eq=False)
class UndefinedElement(KernelRunError, ValueError):
    """A use of an element that a masked load without `other` has left undefined."""

    code = "TW407"
    template = "{what} is computed from elements that a masked load has left undefined"
    hint_template = "pass 'other' to the load, or mask the use as well"

    what: str


@dataclass(eq=False)
class DeviceAssertionFailure(KernelRunError, AssertionError):
    """A `device_assert` whose condition was false in some program instance."""

    code = "TW403"
    template = "device assertion failed in program {program}: {detail}"
    triton_template = "device-side assert triggered"

    detail: str
    program: tuple[int, ...]


# --- TW5xx, TW9xx ---------------------------------------------------------------------------------


@dataclass(eq=False)
class AutotunerError(TilewrightError, RuntimeError):
    """Autotuning that cannot choose a configuration."""

    code = "TW501"
    template = "{detail}"
    triton_template = "Autotuner error: {detail}"
    hint_template = "{instead}"

    detail: str
    instead: str = ""


@dataclass(eq=False)
class InternalCompilerError(TilewrightError, RuntimeError):
    """A bug in the compiler. reproducer: path of a file that shows it, if any"""

    code = "TW901"
    template = "the compiler has a bug: {detail}"

    detail: str
    reproducer: str | None = None

    @property
    def hint(self) -> str | None:
        """The way to report it."""
        what = f"please report it with the file {self.reproducer}" if self.reproducer else None
        return what or "please report it with the kernel's source"
