"""The NVIDIA backend versus Triton and torch."""
