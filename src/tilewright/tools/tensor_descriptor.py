"""`TensorDescriptor`, under the module name that Triton's users import it from."""

from tilewright.language import TensorDescriptor

__all__ = ["TensorDescriptor"]
