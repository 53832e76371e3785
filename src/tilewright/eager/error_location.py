"""Location of an error in the user's kernel, from its traceback."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from types import CodeType, TracebackType

from tilewright.support import SourceLoc


def location_in(
    traceback: TracebackType | None, kernels: Mapping[CodeType, str]
) -> SourceLoc | None:
    """The innermost line in the code of kernel functions, and the calls that lead to it.

    kernels: code of kernel functions -> its file
    """
    location: SourceLoc | None = None
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code in kernels:
            file, name = kernels[code], code.co_filename  # equal code may be in several files
            location = _source_location(file if file == name else name, code, traceback, location)
        traceback = traceback.tb_next
    return location


def definition_of(code: CodeType) -> SourceLoc:
    """The first line of a function."""
    return SourceLoc(code.co_filename, code.co_firstlineno, function=code.co_name)


def _source_location(
    file: str, code: CodeType, traceback: TracebackType, caller: SourceLoc | None
) -> SourceLoc:
    instruction = traceback.tb_lasti // 2  # two bytes for each code unit
    # co_positions has one entry per code unit and cannot be indexed
    positions = next(islice(code.co_positions(), instruction, None), (None,) * 4)
    line, end_line, column, end_column = positions
    if line is None or column is None or end_column is None:
        return SourceLoc(file, traceback.tb_lineno, function=code.co_name, caller=caller)
    # a location has one line; -1 means its end
    end = end_column if end_line == line else -1
    return SourceLoc(file, line, column, end, code.co_name, caller)
