"""How a kernel was lowered for a CPU, and why: `kernel.explain()`."""
