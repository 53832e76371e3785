"""libdevice's functions of fp32, computed in fp32, as formulas in the language.

Formulas take and give tensors of fp32. Their quotients are fast reciprocals, whose operands are
between 2^-126 and 2^126; `tl.exp2`, `tl.sqrt` and `fast_log2f` are a GPU's instructions, which take
subnormal numbers for 0, and accurate functions on CPUs. docs/libdevice.md states the errors.
"""
