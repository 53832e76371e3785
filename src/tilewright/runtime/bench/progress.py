"""A progress bar on stderr for measurements: silent where stderr is not a terminal.

The bar is redrawn only when a step is finished, by the thread that measures. A bar with a refresh
thread of its own would take the processor and the interpreter lock away from what is being timed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from tilewright.support import fork_waits

Step = Callable[[str], None]

_BAR_CHARACTERS = 20


class Bar:
    """A bar that is shown. `bar(text)` is called when a step begins; the one before then counts as
    done."""

    def __init__(self, progress: Any, title: str, steps: int) -> None:
        self._progress = progress
        self._title = title
        self._task = progress.add_task(title, total=steps)
        self._started = 0

    def __call__(self, text: str) -> None:
        self._progress.update(self._task, completed=self._started)
        self._started += 1
        self.say(text)

    def say(self, text: str) -> None:
        """Say what is being done, which is no step."""
        self._progress.update(self._task, description=f"{self._title} {text}", refresh=True)

    def resize(self, steps: int) -> None:
        """Change the number of steps."""
        self._progress.update(self._task, total=steps)


@contextmanager
def step_bar(title: str, steps: int, terminal: object = None) -> Generator[Bar]:
    """Show a bar in a block.

    terminal: a `rich.console.Console` other than stderr
    """
    with fork_waits():  # it takes 30 ms, for which programs that launch kernels need not wait
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
        # no thread that draws: it would take time from what is measured
        auto_refresh=False,
        transient=True,
        # Output of the measured code must reach the program's own stdout and stderr.
        redirect_stdout=False,
        redirect_stderr=False,
        disable=not console.is_terminal,
    )
    with progress:
        yield Bar(progress, title, steps)
