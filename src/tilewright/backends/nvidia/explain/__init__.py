"""`kernel.explain()` for NVIDIA GPUs: what the lowering decided, and why.

Reads a function with layouts; asks the functions that the lowering itself asks.
"""
