"""The error of a command, whose message is shown without a traceback."""


class CommandFailed(Exception):
    """A command cannot do what its arguments say; the message is for its user, one line or more."""
