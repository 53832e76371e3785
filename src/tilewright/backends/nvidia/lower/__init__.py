"""From tile IR with layouts to LLVM IR for one thread of an NVIDIA GPU."""
