"""Which layout each tile gets: what ops want and allow, what it costs, how warps share.

May import `nvidia.ops` and the package `layout`; `passes` apply what is decided here, and `lower`
asks it which registers belong together.
"""
