"""Arguments of kernels: arrays, scalars, stand-ins, and their parts of the launch key.

May import the language, the compiler's signatures and backends' manifests; knows nothing of
launches.
"""

from tilewright.runtime.arguments import host_arrays as host_arrays
