"""Loop-invariant code moves in front of the loop."""
