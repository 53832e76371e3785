"""Loops unroll as `tl.range(loop_unroll_factor=...)` asks."""
