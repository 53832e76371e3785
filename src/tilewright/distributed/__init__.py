"""Kernels over several devices: groups of ranks, memory that peers access, signals between them.

A *rank* is one of several processes or threads that run the same program, each with its device.
`peers(tensor, group)` exchanges the addresses of one tensor per rank: a kernel loads an address
from the table and casts it to a pointer. Kernels of different ranks order their accesses by atomics
with `scope="sys"`; `barrier` is tile code for the usual case. See
docs/howto/run-on-several-devices.md.

`agree(group)` makes the autotuners of all ranks tune together and choose alike.
docs/howto/tune-on-a-cluster.md.
"""

from tilewright.support.lazy_facade import load_at_first_use

load_at_first_use(globals())
