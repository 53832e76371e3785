"""The boundary to LLVM: the only package that imports llvmlite."""

from tilewright.support.lazy_facade import load_at_first_use

load_at_first_use(globals())
