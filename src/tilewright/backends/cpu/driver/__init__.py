"""Runs compiled kernels on this machine: loading, threads, messages, crashes, signals.

May import `llvm` and the manifest; independent of tile IR.
"""
