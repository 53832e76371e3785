"""The loop passes: `hoist` (licm), `uniform_induction`, `unroll`, each in the file of its name.

(Being written, with cleanup.py and the pipelines; the rules and the driver are not touched here.)
"""
