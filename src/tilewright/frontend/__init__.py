"""Source text to tile IR. `semantics`: functions and operators, shared by all front ends; `python`:
kernels under `@jit`; `c`: kernels in Triton-C; `ptx`: inline PTX for machines without PTX.
"""

from tilewright.frontend.frontend_options import FrontendOptions

__all__ = ["FrontendOptions"]
