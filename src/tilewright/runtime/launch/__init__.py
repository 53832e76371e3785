"""From `kernel[grid](...)` to a running grid.

The first launch of a variant goes down five files:

    runtime/jit.py            `kernel[grid]` calls `JITFunction._launch`; `launch_compiled` takes
                              three steps:
      bound_call.py           1. arguments -> parameters
      variant_cache.py        2. `BoundCall.key` -> variant; a new one is compiled, or read from
                                 the disk cache, by `compile_source`
        key_rules.py             in `arguments/`: an argument -> its part of the key
        compiled_kernel.py       in `compiler/`: the driver loads the kernel
                              3. the driver's launcher, `variant.launch`, runs the grid

From the kernel's second launch on, `JITFunction._launch` is the function of `native_dispatch.py`:
machine code that finds a cache entry by words that describe the arguments, and calls the driver. A
function over arrays has a table of the same kind, whose words hold the layouts of its arrays
(`prepared_launches.py`). Only launches with arguments that may overlap pass `overlap_warning.py`.

The facade has what is imported at its first use: machine code, checks, the interpreter.

May import `runtime.arguments`; knows nothing of tuning.
"""

from tilewright.support.lazy_facade import load_at_first_use

load_at_first_use(globals())
