"""Passes of the CPU backend alone: tile IR to the tile IR that `lower` accepts.

May import `cpu.ops`, the IR, analyses and shared transforms; independent of LLVM and of running
code.
"""
