"""`as_triton()`: from then on `import triton`, and every module below it, is this package.

    import tilewright
    tilewright.as_triton()
    import triton                    # Tilewright, with Triton's module tree
    import somebody_s_kernels        # unmodified

`tilewright run-script FILE` does it before the first line of a script, and the package that
`install` writes for every process. No module is copied: `module_table` says for each of Triton's
modules which of our names it has.
"""

from tilewright.triton_alias.alias_finder import as_triton
from tilewright.triton_alias.installation import FoundTriton, install, installed, uninstall
from tilewright.triton_alias.torch_version import register_with_inductor

__all__ = [
    "FoundTriton",
    "as_triton",
    "install",
    "installed",
    "register_with_inductor",
    "uninstall",
]
