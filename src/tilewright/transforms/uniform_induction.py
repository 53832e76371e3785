"""Loop-carried tiles that move by a uniform amount become a scalar total."""
