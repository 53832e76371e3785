"""Executes the LLVM text of NVIDIA kernels thread by thread, with NumPy, on machines without a GPU.

All threads of a program run in step as arrays; where they part, those at the earliest block go
first. With a seed the warps go one after another instead, in an order drawn with it. Either way
threads that meet in global or shared memory without a barrier between are an error, as are copies
that are touched before they are waited for, or whose source changes meanwhile, misaligned accesses,
and sums that wrap though they are said not to.
"""

from tests.emulator.launch import accessible

__all__ = ["accessible"]
