"""Passes of the NVIDIA backend, each a file that opens with IR before and after.

`pipeline.py` beside this folder lists them in order. May import `nvidia.layouts`, `nvidia.lower`
(for what ops need of shared memory) and the shared transforms; knows nothing of PTX or of running
code.
"""
