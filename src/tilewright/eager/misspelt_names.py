"""Names and attributes that do not exist: Python's exceptions as errors of the compiler."""

from __future__ import annotations

import builtins
import re
from collections.abc import Mapping
from types import CodeType, FrameType, TracebackType
from typing import cast

from tilewright.frontend.python import undefined_local, unknown_attribute
from tilewright.support import errors


def designed_error(
    error: NameError | AttributeError, kernels: Mapping[CodeType, str]
) -> errors.CompilationError | None:
    """The compiler's error for an exception that code of a kernel itself has raised, or None.

    kernels: code of kernel functions -> its file
    """
    traceback = cast("TracebackType", error.__traceback__)
    # a constexpr forwards attributes to its value, and a module may compute attributes
    while traceback.tb_next is not None and not _is_lookup(traceback.tb_next.tb_frame.f_code):
        traceback = traceback.tb_next
    frame = traceback.tb_frame
    # exceptions of library functions do not concern the kernel's names
    if frame.f_code not in kernels:
        return None
    if isinstance(error, AttributeError):
        # without a name: raised by the kernel's own code, not by an access
        if error.name is None or _is_assignment(error):
            return None
        return unknown_attribute(error.obj, error.name)
    quoted = re.search(r"'(\w+)'", str(error))
    if quoted is None:
        return None
    name = quoted[1]
    if isinstance(error, UnboundLocalError):
        return undefined_local(name, _visible(frame, frame.f_locals))
    return errors.UndefinedName(name, _visible(frame, frame.f_locals | frame.f_globals))


def _is_assignment(error: AttributeError) -> bool:
    """Whether an attribute could not be set: Python 3.13 names it as in an access."""
    return "for setting new attributes" in str(error)


def _is_lookup(code: CodeType) -> bool:
    return code.co_name == "__getattr__"


def _visible(frame: FrameType, names: Mapping[str, object]) -> list[str]:
    """Names of the user, without the helpers of rewritten code."""
    return [name for name in names if not name.startswith("__") and name not in vars(builtins)]
