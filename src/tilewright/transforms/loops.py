"""Loops: scalar totals instead of carried tiles, motion of invariant code, unrolling."""
