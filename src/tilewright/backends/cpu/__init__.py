"""The CPU backend: tile ops to fused loop nests to machine code."""
