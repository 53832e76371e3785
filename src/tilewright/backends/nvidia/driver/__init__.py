"""Execution of cubins: the driver API, contexts, streams, launches in machine code, messages.

May import `llvm`, `nvidia.arch` and the manifest; independent of tile IR.
"""
