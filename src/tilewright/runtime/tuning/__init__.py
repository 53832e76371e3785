"""Selection among configurations: trials, timings on disk, heuristics, restored arrays.

May import `runtime.launch`, `runtime.arguments` and `runtime.bench`.
"""
