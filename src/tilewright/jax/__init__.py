"""Kernels in programs of JAX: `call` under `jit`, `vmap` and on several devices, through XLA's
foreign functions.

    import tilewright.jax
    out = tilewright.jax.call(add, grid, jax.ShapeDtypeStruct(x.shape, x.dtype), x, y, n=x.size)

See docs/howto/call-a-kernel-from-jax.md.
"""

from tilewright.support.lazy_facade import load_at_first_use

load_at_first_use(globals())
