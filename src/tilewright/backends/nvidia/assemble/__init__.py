"""From LLVM IR to PTX to a cubin: legality for NVPTX, isolated code generation, ptxas.

May import `llvm` and `nvidia.arch`; independent of tile IR.
"""
