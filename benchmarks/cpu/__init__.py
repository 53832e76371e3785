"""The CPU backend versus torch and the limits of the machine."""
