"""Executes the LLVM text of NVIDIA kernels thread by thread, with NumPy, on machines without a GPU.

All threads of a program run in step as arrays; where they part, those at the earliest block go
first. Shared memory reports races, cp.async copies late, and every access is checked for
alignment.
"""

from tests.emulator.launch import accessible

__all__ = ["accessible"]
