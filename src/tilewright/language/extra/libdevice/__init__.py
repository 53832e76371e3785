"""`libdevice`: the wider mathematical library, on every backend.

Functions of floats take tensors and literals as those of `tl.math` do, and those that are in both
are the same, but for `exp`. docs/libdevice.md lists the worst errors. `_rn`, `_rz`, `_rd` and
`_ru` round to nearest, toward zero, down and up; conversions to integers give the nearest one
beyond their range, and for a NaN what a GPU's instruction gives. The `fast_` functions are a GPU's
own instructions.

The functions are tile code, in the modules of this package (language/library_functions.py); the
names are in `__init__.pyi`.
"""

from tilewright.support.lazy_facade import load_at_first_use

load_at_first_use(globals())
