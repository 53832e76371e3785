"""The layout of each tile: what ops prefer and require, what it costs, how warps share dots.

May import `nvidia.ops` and the package `layout`; `passes` apply what is decided here, and `lower`
finds here which registers belong together.
"""
