"""`as_triton()`: `import triton`, and every submodule of it, is then this package.

    import tilewright
    tilewright.as_triton()
    import triton                    # Tilewright, with Triton's module tree
    import somebody_s_kernels        # unmodified

`tilewright run-script FILE` calls it before the first line of a script, and the package that
`install` writes calls it in every process. No module is copied: `module_table` lists the names of
each of Triton's modules.
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
