"""Source text to tile IR. `semantics`: what functions and operators do, shared by all front ends;
`python`: kernels under `@jit`; `c`: kernels in Triton-C. There is nothing else to import from here.
"""
