"""Compilation ahead of time: variants of kernels as specs, in files, compiled before a launch.

    spec.py          one variant: kernel, facts of its arguments, compile-time values, options
    spec_file.py     variants as TOML
    find_kernel.py   kernels by the name of a module or file
    recording.py     launches as specs
    variants.py      the variants that declared arguments reach
    compile_variants.py   compiled and loaded before a launch
    misses.py        launches whose variant is not in memory; worker_process.py compiles it

Imported only where a variant is compiled ahead; launches do not need it.
"""

from tilewright.support.lazy_facade import load_at_first_use

load_at_first_use(globals())
