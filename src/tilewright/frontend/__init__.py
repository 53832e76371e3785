"""From source text to tile IR: semantics once, one folder per source language."""
