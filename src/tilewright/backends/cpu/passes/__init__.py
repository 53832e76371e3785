"""Passes of the CPU backend alone: tile IR to the tile IR that `lower` accepts.

May import `cpu.ops`, the IR, analyses and shared transforms; knows nothing of LLVM or of running
code.
"""
