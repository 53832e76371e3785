"""`tilewright.tools.tensor_descriptor`: `TensorDescriptor` where Triton has it."""

from tilewright.language import TensorDescriptor

__all__ = ["TensorDescriptor"]
