"""Passes of the NVIDIA backend, each a file that opens with IR before and after.

`pipeline.py`, next to this folder, lists them in order. May import `nvidia.schedule`,
`nvidia.shared_memory`, `nvidia.layouts` and the shared transforms; independent of PTX and of the
driver.
"""
