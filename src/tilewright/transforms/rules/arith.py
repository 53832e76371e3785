"""Identities and constant folding of element-wise arithmetic."""
