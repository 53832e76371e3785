"""From LLVM IR to PTX to a cubin: what NVPTX survives, isolated code generation, ptxas.

May import `llvm` and `nvidia.arch`; independent of tile IR.
"""
