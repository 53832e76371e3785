"""A progress bar on stderr for measurements; silent if stderr is not a terminal.

The measuring thread redraws the bar, and only after a step: a separate refresh thread would take
processor time and the interpreter lock from the timed code.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from tilewright.support import fork_waits

Step = Callable[[str], None]

_BAR_CHARACTERS = 20


class Bar:
    """A progress bar. `bar(text)` is called when a step starts; the step before it is then done."""

    def __init__(self, progress: Any, title: str, steps: int) -> None:
        self._progress = progress
        self._title = title
        self._task = progress.add_task(title, total=steps)
        self._started = 0

    def __call__(self, text: str) -> None:
        self._progress.update(self._task, completed=self._started)
        self._started += 1
        self.show(text)

    def show(self, text: str) -> None:
        """Show a text without starting a step."""
        self._progress.update(self._task, description=f"{self._title} {text}", refresh=True)

    def resize(self, steps: int) -> None:
        """Change the number of steps."""
        self._progress.update(self._task, total=steps)


@contextmanager
def step_bar(title: str, steps: int, terminal: object = None) -> Generator[Bar]:
    """Show a bar in a block.

    terminal: a `rich.console.Console` other than stderr
    """
    with fork_waits():  # imported late, since it is slow to import
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )
        from rich.table import Column

    console = terminal if isinstance(terminal, Console) else Console(stderr=True)
    columns = (
        TextColumn(
            "{task.description}",
            markup=False,
            table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"),
        ),
        BarColumn(_BAR_CHARACTERS),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    progress = Progress(
        *columns,
        console=console,
        expand=True,
        # no drawing thread: it would take time from the timed code
        auto_refresh=False,
        transient=True,
        # Output of the measured code must reach the program's own stdout and stderr.
        redirect_stdout=False,
        redirect_stderr=False,
        disable=not console.is_terminal,
    )
    with progress:
        yield Bar(progress, title, steps)
