"""The NVIDIA backend."""
