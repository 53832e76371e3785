"""Kernels with one mistake each; the docstring of a kernel is the error that it must give.

Only what an edit of the test file would change is left out: paths and line numbers. Source lines
lose their indentation of four.
"""

import inspect
import re
from collections.abc import Callable, Iterator

import pytest

from tests.unit.frontend.python.harness import lower
from tilewright.eager import run_kernel
from tilewright.language import DeviceFunction, device_function
from tilewright.support import errors


class Mistake:
    """A kernel and the arguments to lower it with."""

    def __init__(self, kernel: DeviceFunction, args: dict[str, object]) -> None:
        self.kernel = kernel
        self.args = args

    def __repr__(self) -> str:
        return self.kernel.__name__

    @property
    def expected(self) -> str:
        """The error that the kernel must give."""
        return inspect.cleandoc(self.kernel.fn.__doc__ or "") + "\n"

    def shown(self) -> str:
        """The error that it gives."""
        with pytest.raises(errors.CompilationError) as caught:
            lower(self.kernel, **self.args)
        return _without_places(str(caught.value))

    def interpreted(self, **args: object) -> str:
        """The error that it gives in the interpreter, with arrays for its pointers."""
        with pytest.raises(errors.CompilationError) as caught:
            run_kernel(self.kernel, (1,), args)
        return _without_places(str(caught.value))


class Mistakes:
    """The mistakes of one test file: `@mistake(out="*i32")` adds a kernel with its arguments."""

    def __init__(self) -> None:
        self._found: list[Mistake] = []

    def __call__(self, **args: object) -> Callable[[Callable[..., object]], DeviceFunction]:
        def register(fn: Callable[..., object]) -> DeviceFunction:
            kernel = device_function(fn)
            self._found.append(Mistake(kernel, args))
            return kernel

        return register

    def __iter__(self) -> Iterator[Mistake]:
        return iter(self._found)


def _without_places(text: str) -> str:
    lines: list[str] = []
    for line in text.splitlines():
        excerpt = re.match(r" *\d* \|(?:     | )?(.*)", line)
        if excerpt is None:
            line = re.sub(r"/[^ ]*/([\w.]+):\d+", r"\1", line.removeprefix("  "))
            line = re.sub(r"(loop|'if') of line \d+", r"\1 of line N", line)
            if not line.startswith("-->"):
                lines.append(re.sub(r"called from .*( in \w+)", r"called\1", line))
        elif excerpt[1]:
            lines.append(excerpt[1])
    return "\n".join(lines) + "\n"
