"""How programs that wait for each other run: what generated code and the thread pool agree on."""

IN_ORDER, MANY_AT_ONCE, ALL_AT_ONCE = 0, 1, 2
"""Of a kernel's programs: each thread takes them in order; as many run at a time as there can be
threads; or all of a grid do, or none."""

LEAVE = 2
"""Of `*poll`: programs that wait end; plus 1 and the number of its spin loop: one has."""
