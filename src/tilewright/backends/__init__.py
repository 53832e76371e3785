"""One folder per backend; siblings do not know each other."""
