"""What kernel authors import as tl: typed, documented language functions."""
