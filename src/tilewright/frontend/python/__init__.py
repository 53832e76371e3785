"""The Python front end: kernel source, abstract syntax tree, tile IR."""
