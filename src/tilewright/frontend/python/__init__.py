"""The Python front end: finds the source of a kernel and lowers its syntax tree to tile IR.

`interpret=True` (package `eager`) shares the semantics of Python constructs: `compare_values`,
`logical_connective`, `logical_not`, and the queries of syntax trees.
"""

from tilewright.support.lazy_facade import load_at_first_use

load_at_first_use(globals())
