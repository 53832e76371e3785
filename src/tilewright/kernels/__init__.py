"""Ready-made kernels, one family per file: kernels, functions over arrays, configurations."""

from tilewright.kernels.attention import attention
from tilewright.kernels.attention_backward import attention_backward
from tilewright.kernels.attention_decode import attention_decode
from tilewright.kernels.attention_descriptors import attention_by_descriptors
from tilewright.kernels.dropout import dropout
from tilewright.kernels.elementwise import add
from tilewright.kernels.grouped_matmul import grouped_matmul
from tilewright.kernels.matmul import matmul
from tilewright.kernels.norm import layer_norm
from tilewright.kernels.quantized_matmul import quantized_matmul
from tilewright.kernels.softmax import softmax
from tilewright.kernels.transpose import transpose

__all__ = [
    "add",
    "attention",
    "attention_backward",
    "attention_by_descriptors",
    "attention_decode",
    "dropout",
    "grouped_matmul",
    "layer_norm",
    "matmul",
    "quantized_matmul",
    "softmax",
    "transpose",
]
