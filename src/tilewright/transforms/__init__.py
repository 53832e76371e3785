"""Target-independent rewrites and passes over tile IR."""
