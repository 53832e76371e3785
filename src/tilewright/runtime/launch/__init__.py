"""From `kernel[grid](...)` to a running grid.

The first launch of a variant goes down these files, and enters each once:

    runtime/jit.py            `kernel[grid]` calls the launch function
    launch_code.py            the generated `launch` specializes the arguments, finds no variant
    launch_function.py        `_bind_and_launch` takes the three steps below
      bound_call.py           1. arguments -> parameters, keys, device, options, signature
      variant_cache.py        2. key -> variant; if it is new,
        compiler/compile.py      it is compiled, or read from the disk cache, and
        variant.py               loaded, with what its further launches need beside it
      backends/*/driver/      3. the driver's launcher, which is `variant.launch`, runs the grid

Later launches of the variant end in the generated `launch` or, from the kernel's second launch on,
in the table of `native_dispatch.py`: machine code that finds the variant by descriptors of the
arguments and calls the driver. A function over arrays has a table of the same kind, whose
descriptors hold the layouts of its arrays (`prepared_launches.py`). Only launches with arguments
that may overlap pass `overlap_warning.py`.

May import `runtime.arguments`; knows nothing of tuning.
"""

from tilewright.support.lazy_facade import load_at_first_use

load_at_first_use(globals())
