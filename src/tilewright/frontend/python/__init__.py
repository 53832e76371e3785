"""The Python front end: finds the source of a kernel and lowers its syntax tree to tile IR.

`interpret=True` (package `eager`) takes from here how constructs of Python work in a kernel:
`compare_values`, `logical_connective`, `logical_not`, and the queries of syntax trees.
"""

from tilewright.support.lazy_facade import load_at_first_use

load_at_first_use(globals())
