"""Tilewright under torch: `torch.compile` and Liger-Kernel."""
