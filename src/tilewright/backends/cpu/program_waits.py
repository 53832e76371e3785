"""Scheduling of programs that wait for each other, shared by generated code and the thread pool."""

IN_ORDER, MANY_AT_ONCE, ALL_AT_ONCE = 0, 1, 2
"""Modes of a kernel's programs: each thread takes them in order; as many run concurrently as there
can be threads; or all programs of a grid run concurrently, or none."""

LEAVE = 2
"""Value of `*poll` from which on waiting programs return; a program that has returned adds 1 and
the number of its spin loop."""
