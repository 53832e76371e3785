"""TW23x: mistakes in compilation ahead of time: specs, declared arguments, missing variants."""

from tilewright.support.data_class import dataclass
from tilewright.support.errors.host_errors import LaunchError


@dataclass(eq=False)
class InvalidArgumentText(LaunchError, ValueError):
    """An argument that is stated as text, with facts that no value has."""

    code = "TW230"
    template = "argument '{argument}': '{text}' {problem}"
    hint_template = "write a type and its facts, as in '*fp16:16', 'i32:16,>=0,<4096' or 'i32=1'"

    argument: str
    text: str
    problem: str


@dataclass(eq=False)
class InvalidSpec(LaunchError, ValueError):
    """A spec file that cannot be read, or a spec that cannot be written."""

    code = "TW231"
    template = "{place}: {problem}"
    hint_template = "{instead}"

    place: str
    problem: str
    instead: str = ""


@dataclass(eq=False)
class TooManyVariants(LaunchError, ValueError):
    """Declared arguments that reach more variants than are compiled without confirmation."""

    code = "TW233"
    template = "{kernel}: {count} variants are more than {limit}"
    hint_template = "{instead}"

    kernel: str
    count: int
    limit: int
    instead: str


@dataclass(eq=False)
class MissingVariant(LaunchError, RuntimeError):
    """A launch under `on_miss="error"` whose variant was not compiled before."""

    code = "TW234"
    template = "{kernel} has no compiled variant for this launch: {reason}"
    hint_template = "declare these values to {kernel}.precompile(...), or choose on_miss='generic'"

    kernel: str
    reason: str


@dataclass(eq=False)
class KernelMissing(LaunchError, LookupError):
    """A kernel that its name does not reach: no such file, module or function."""

    code = "TW232"
    template = "{problem}"

    problem: str
