"""Choosing among configurations: trials, timings on disk, heuristics, arrays put back.

May import `runtime.launch`, `runtime.arguments` and `runtime.bench`.
"""
