"""The CPUs that this process may run on."""

import os


def usable_cpus() -> tuple[int, ...]:
    """Their numbers, at least one: containers and `taskset` may leave a process only some."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))
