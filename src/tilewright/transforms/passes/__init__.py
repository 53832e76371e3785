"""Passes that every backend may use, each a file that opens with IR before and after."""
