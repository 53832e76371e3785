from tilewright.jax.kernel_call import call

__all__ = ["call"]
