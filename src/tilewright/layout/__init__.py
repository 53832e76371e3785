"""F2-linear layouts: how the elements of a tile are spread over registers, lanes and warps."""
