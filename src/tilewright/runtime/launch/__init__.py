"""From `kernel[grid](...)` to a running grid.

The first launch of a variant goes down these files, and enters each once:

    runtime/jit.py            `kernel[grid]` calls `JITFunction._launch`
    launch_function.py        `launch` takes the three steps below
      bound_call.py           1. arguments -> parameters, key, device, options, signature
      variant_cache.py        2. key -> variant; if it is new,
        compiler/compile.py      it is compiled, or read from the disk cache, and
        variant.py               loaded, with what its further launches need
      backends/*/driver/      3. the driver's launcher, which is `variant.launch`, runs the grid

From the kernel's second launch on, `JITFunction._launch` is the function of `native_dispatch.py`:
machine code that finds a cache entry by words that describe the arguments, and calls the driver. A
function over arrays has a table of the same kind, whose words hold the layouts of its arrays
(`prepared_launches.py`). Only launches with arguments that may overlap pass `overlap_warning.py`.

The facade has what is imported at its first use: machine code, checks, the interpreter.

May import `runtime.arguments`; knows nothing of tuning.
"""

from tilewright.support.lazy_facade import load_at_first_use

load_at_first_use(globals())
