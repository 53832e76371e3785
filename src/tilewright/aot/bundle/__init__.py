"""Bundles: kernels for programs without Python, as C source with a runtime of its own.

    bundle_targets.py    the CPUs and GPUs that a bundle may have code for
    bundle_kernel.py     a kernel with its variants: arguments, facts, compiled code
    grid_expression.py   Python expressions of a grid as C
    bundle_source.py     the C source: runtime, machine code, tables, functions
    bundle_header.py     the header
    build_bundle.py      compiles specs, and writes all files with a manifest
    bundle_types.h ...   the runtime in C

Imported only by the command `tilewright build` and by programs that build bundles.
"""
