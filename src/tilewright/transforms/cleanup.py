"""The clean-up passes: canonicalize, cse, dce.

(Being written, with loops.py and the pipelines; the rules and the driver are not touched here.)
"""
