"""The inspector: one offline HTML page that shows what became of a kernel, stage by stage."""

from tilewright.inspector.inspect_kernel import Inspected, inspect_kernel, inspect_source

__all__ = ["Inspected", "inspect_kernel", "inspect_source"]
