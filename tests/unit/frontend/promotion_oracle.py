"""Result dtypes of Triton 3.6.0 and 3.9.0 as compiled there; `3.6→3.9` where they differ.

i/u: signed and unsigned integers, u1: bool, h: fp16, b: bf16, f: fp32, d: fp64, e4: fp8e4nv,
e5: fp8e5, E: compile error. Rows are left operands. Sort and histogram are not part of the table.
"""

ADD = """\
a|i8|i32|u32|i64|u64|fp16|bf16|fp32|fp64
u1|i8|i32|u32|i64|u64|h|f|f|d
i8|i8|i32|u32|i64|u64|h|f|f|d
u8|u8|i32|u32|i64|u64|h|f|f|d
i32|i32|i32|u32|i64|u64|h|f|f|d
u32|u32|u32|u32|i64|u64|h|f|f|d
i64|i64|i64|i64|i64|u64|h|f|f|d
u64|u64|u64|u64|u64|u64|h|f|f|d
fp16|h|h|h|h|h|h|h|f|d
bf16|f|f|f|f|f|h|b|f|d
fp32|f|f|f|f|f|f|f|f|d
"""

TRUEDIV = """\
a|i8|i32|u32|i64|u64|fp16|bf16|fp32|fp64
u1|E|E|f|E|f|f|f|f|d
i8|f|f|E|f|E|f|f|f|d
u8|E|E|f|E|f|f|f|f|d
i32|f|f|E|f|E|f|f|f|d
u32|E|E|f|E|f|f|f|f|d
i64|f|f|E|f|E|f|f|f|d
u64|E|E|f|E|f|f|f|f|d
fp16|f|f|f|f|f|f|f|f|d
bf16|f|f|f|f|f|f|f|f|d
fp32|f|f|f|f|f|f|f|f|d
"""

FLOORDIV = """\
a|i8|i32|u32|i64|u64|fp16|bf16|fp32|fp64
u1|E|E|u32|E|u64|E|E|E|E
i8|i8|i32|E|i64|E|E|E|E|E
u8|E|E|u32|E|u64|E|E|E|E
i32|i32|i32|E|i64|E|E|E|E|E
u32|E|E|u32|E|u64|E|E|E|E
i64|i64|i64|E|i64|E|E|E|E|E
u64|E|E|u64|E|u64|E|E|E|E
fp16|E|E|E|E|E|E|E|E|E
bf16|E|E|E|E|E|E|E|E|E
fp32|E|E|E|E|E|E|E|E|E
"""

MOD = """\
a|i8|i32|u32|i64|u64|fp16|bf16|fp32|fp64
u1|E|E|u32|E|u64|f|f|f|d
i8|i8|i32|E|i64|E|f|f|f|d
u8|E|E|u32|E|u64|f|f|f|d
i32|i32|i32|E|i64|E|f|f|f|d
u32|E|E|u32|E|u64|f|f|f|d
i64|i64|i64|E|i64|E|f|f|f|d
u64|E|E|u64|E|u64|f|f|f|d
fp16|f|f|f|f|f|f|f|f|d
bf16|f|f|f|f|f|f|f|f|d
fp32|f|f|f|f|f|f|f|f|d
"""

LITERALS = """\
a|op|1|-1|300|3000000000|2.5|True|1e300
u1|+|i32|i32|i32|u32|f|i1|d
u1|/|E|E|E|f|f|f|d
u1|//|E|E|E|u32|E|i1|E
u1|%|E|E|E|u32|f|i1|d
u1|<|i1|i1|i1|i1|i1|i1|i1
u1|&|i32|i32|i32|u32|E|i1|E
i8|+|i8|i8|E|E|f|i8|d
i8|/|f|f|E|E|f|f|d
i8|//|i8|i8|E|E|E|i8|E
i8|%|i8|i8|E|E|f|i8|d
i8|<|i1|i1|i1→E|i1→E|i1|i1|i1
i8|&|i8|i8|E|E|E|i8|E
u8|+|u8|E|E|E|f|u8|d
u8|/|f|E|E|E|f|f|d
u8|//|u8|E|E|E|E|u8|E
u8|%|u8|E|E|E|f|u8|d
u8|<|i1|i1→E|i1→E|i1→E|i1|i1|i1
u8|&|u8|E|E|E|E|u8|E
i32|+|i32|i32|i32|E|f|i32|d
i32|/|f|f|f|E|f|f|d
i32|//|i32|i32|i32|E|E|i32|E
i32|%|i32|i32|i32|E|f|i32|d
i32|<|i1|i1|i1|i1→E|i1|i1|i1
i32|&|i32|i32|i32|E|E|i32|E
i64|+|i64|i64|i64|i64|f|i64|d
i64|/|f|f|f|f|f|f|d
i64|//|i64|i64|i64|i64|E|i64|E
i64|%|i64|i64|i64|i64|f|i64|d
i64|<|i1|i1|i1|i1|i1|i1|i1
i64|&|i64|i64|i64|i64|E|i64|E
u64|+|u64|E|u64|u64|f|u64|d
u64|/|f|E|f|f|f|f|d
u64|//|u64|E|u64|u64|E|u64|E
u64|%|u64|E|u64|u64|f|u64|d
u64|<|i1|i1→E|i1|i1|i1|i1|i1
u64|&|u64|E|u64|u64|E|u64|E
e5|+|E→e5|E→e5|E→e5|E→e5|E→e5|E→e5|E→e5
e5|/|E→f|E→f|E→f|E→f|E→f|E→f|E→f
e5|//|E|E|E|E|E|E|E
e5|%|E→f|E→f|E→f|E→f|E→f|E→f|E→f
e5|<|E→i1|E→i1|E→i1|E→i1|i1|E→i1|i1
e5|&|E|E|E|E|E|E|E
fp16|+|h|h|h|h|h|h|h
fp16|/|f|f|f|f|f|f|f
fp16|//|E|E|E|E|E|E|E
fp16|%|f|f|f|f|f|f|f
fp16|<|i1|i1|i1|i1|i1|i1|i1
fp16|&|E|E|E|E|E|E|E
bf16|+|b|b|b|b|b|b|b
bf16|/|f|f|f|f|f|f|f
bf16|//|E|E|E|E|E|E|E
bf16|%|f|f|f|f|f|f|f
bf16|<|i1|i1|i1|i1|i1|i1|i1
bf16|&|E|E|E|E|E|E|E
fp32|+|f|f|f|f|f|f|f
fp32|/|f|f|f|f|f|f|f
fp32|//|E|E|E|E|E|E|E
fp32|%|f|f|f|f|f|f|f
fp32|<|i1|i1|i1|i1|i1|i1|i1
fp32|&|E|E|E|E|E|E|E
"""

FUNCTIONS = """\
expression|u1|i8|u8|i16|i32|u32|i64|u64|e5|e4|fp16|bf16|fp32|fp64
tl.sum(av,0)|u32|i32|u32|i32|i32|u32|i64|u64|e5|e4|h|b|f|d
tl.max(av,0)|i32|i32|i32|i32|i32|u32|i64|u64|f|f|f|f|f|d
tl.max(av,0,return_indices=True)[0]|i1|i8|u8|i16|i32|u32|i64|u64|e5|e4|h|f→b|f|d
tl.cumsum(av,0)|u32|i32|u32|i32|i32|u32|i64|u64|e5|e4|h|f→b|f|d
tl.cumprod(av,0)|i1→u32|i8→i32|u8→u32|i16→i32|i32|u32|i64|u64|e5|e4|h|f→b|f|d
-av|i1|i8|u8|i16|i32|u32|i64|u64|e5|e4|h|b|f|d
~av|i1|i8|u8|i16|i32|u32|i64|u64|E|E|E|E|E|E
tl.abs(av)|i1|i8|u8|i16|i32|u32|i64|u64|e5|e4|h|b|f|d
tl.maximum(av,0)|i32|i32→i8|i32→u8|i32→i16|i32|u32|i64|u64|E→e5|E→e4|h|f→b|f|d
tl.maximum(av,av)|i1|i8|u8|i16|i32|u32|i64|u64|e5|e4|h|f→b|f|d
tl.where(av>0,av,0.5)|f|f|f|f|f|f|f|f|E→e5|E→e4|h|b|f|d
tl.clamp(av,0,1)|E→i32|E→i8|E→u8|E→i16|E→i32|E→u32|E→i64|E→u64|E→e5|E→e4|h|f→b|f|d
tl.exp(av)|E|E|E|E|E|E|E|E|E|E|E|E|f|d
tl.sqrt(av)|E|E|E|E|E|E|E|E|E|E|E|E|f|d
tl.floor(av)|E|E|E|E|E|E|E|E|E|E|E|E|f|d
tl.sigmoid(av)|E|E|E|E|E|E|E|E|E|E|E|E|f|d
tl.softmax(av)|E|E|E|E|E|E|E|E|f|f|f|f|f|d
tl.fma(av,av,av)|E|E|E|E|E|E|E|E|e5|e4|h|b|f|d
tl.fdiv(av,av)|E|E|E|E|E|E|E|E|e5→f|e4→f|h→f|b→f|f|d
av<<1|i32|i8|u8|i16|i32|u32|i64|u64|E|E|E|E|E|E
av>>1|i32|i8|u8|i16|i32|u32|i64|u64|E|E|E|E|E|E
av**2|E|E|E|E|E|E|E|E|E|E|E|E|E|E
"""
