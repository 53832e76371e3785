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
class KernelMissing(LaunchError, LookupError):
    """A kernel that its name does not reach: no such file, module or function."""

    code = "TW232"
    template = "{problem}"

    problem: str
