"""Source text to tile IR. `semantics`: what functions and operators do, shared by all front ends;
`python`: kernels under `@jit`; `c`: kernels in Triton-C. From here only their options are imported.
"""

from tilewright.frontend.frontend_options import FrontendOptions

__all__ = ["FrontendOptions"]
