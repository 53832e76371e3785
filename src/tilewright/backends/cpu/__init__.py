"""The CPU backend: tile ops to fused loop nests to machine code.

Importing it starts to compile the pool of threads, beside the imports of the other modules.
"""

from tilewright.backends.cpu.driver.thread_pool import compile_early

compile_early()
