"""`libdevice`: the wider mathematical library, on every backend.

Functions of floats take tensors and literals as those of `tl.math` do, and those that are in both
are the same, but for `exp`. docs/libdevice.md lists the worst errors. `_rn`, `_rz`, `_rd` and
`_ru` round to nearest, toward zero, down and up. Conversions to integers saturate, and convert a
NaN as a GPU's instruction does. The `fast_` functions are a GPU's own instructions.

The functions are tile code under `library_function` (language/library_functions.py), in the modules
of this package; `__init__.pyi` lists their names.
"""

from tilewright.support.lazy_facade import load_at_first_use

load_at_first_use(globals())
