from tilewright.frontend.ptx.ptx_translation import Assembly, translated

__all__ = ["Assembly", "translated"]
