"""What users pass to kernels: arrays, scalars, stand-ins; what of them decides a variant.

May import the language, the compiler's signatures and backends' manifests; knows nothing of
launches.
"""
