"""Public helpers to test and time kernels."""
