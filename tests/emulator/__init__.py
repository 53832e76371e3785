"""Executes the LLVM text of NVIDIA kernels thread by thread, with NumPy, on machines without a GPU.

Warps at the same place run in step as arrays, those at the earliest block first. With a seed they
go one after another instead, in an order drawn with it. Either way each waits for barriers,
mbarriers, registers and tensor cores by itself; when all wait, the error says for what.

What is asynchronous (copies, bulk copies, wgmma) reads its sources and brings its results at the
latest moment allowed, and nobody may touch either before. Accesses of threads that meet in global
or shared memory must be ordered by what synchronizes them (`clocks`), and fenced where they are
made through different proxies. Misaligned accesses are errors too, and sums that wrap though they
are said not to.
"""

from tests.emulator.launch import accessible

__all__ = ["accessible"]
