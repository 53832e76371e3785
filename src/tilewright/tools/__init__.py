"""The command `tilewright`: demo, compile, opt, run, pipeline, cache, env."""
