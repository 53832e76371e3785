"""A progress bar on stderr for measurements: silent where stderr is not a terminal.

The bar is redrawn only when a step is finished, by the thread that measures. A bar with a refresh
thread of its own would take the processor and the interpreter lock away from what is being timed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

from tilewright.support import fork_waits

Step = Callable[[str], None]


@contextmanager
def step_bar(title: str, steps: int, terminal: object = None) -> Generator[Step]:
    """Yield `start(text)`, to be called when a step begins; the step before then counts as done.

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

    console = terminal if isinstance(terminal, Console) else Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    bar = Progress(
        *columns,
        console=console,
        auto_refresh=False,
        transient=True,
        # Output of the measured code must reach the program's own stdout and stderr.
        redirect_stdout=False,
        redirect_stderr=False,
        disable=not console.is_terminal,
    )
    started = 0
    with bar:
        task = bar.add_task(title, total=steps)

        def start(text: str) -> None:
            nonlocal started
            bar.update(task, completed=started, description=f"{title} {text}", refresh=True)
            started += 1

        yield start
