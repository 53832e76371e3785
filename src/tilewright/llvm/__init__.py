"""The boundary to LLVM: the only package that imports llvmlite."""
