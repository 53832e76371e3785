"""`kernel.explain()` for NVIDIA GPUs: the decisions of the lowering, and their reasons.

Reads a function with layouts, by the functions that the lowering itself calls.
"""
