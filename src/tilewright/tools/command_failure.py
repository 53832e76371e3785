"""What a command says instead of a traceback."""


class CommandFailed(Exception):
    """A command cannot do what it was asked for; the message is for its user, one line or more."""
