"""Running unmodified Triton scripts on this package."""
