"""Command line and inspection tools."""
