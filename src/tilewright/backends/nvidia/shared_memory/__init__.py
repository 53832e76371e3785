"""Shared memory: how ops access it, how many bytes they need, and at which offsets.

May import `nvidia.layouts` and the ops; for `passes`, `lower` and `explain`.
"""
