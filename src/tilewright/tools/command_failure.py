"""Errors of commands, shown without a traceback."""


class CommandFailed(Exception):
    """A failure of a command; the message, of one or more lines, is shown to the user."""
