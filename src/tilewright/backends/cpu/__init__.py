"""The CPU backend: tile ops to fused loop nests to machine code.

Importing it starts the compilation of the thread pool, concurrent with the imports of other
modules.
"""

from tilewright.backends.cpu.driver.thread_pool import compile_early

compile_early()
