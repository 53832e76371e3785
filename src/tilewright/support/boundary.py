"""The line between the user's code and the compiler: mistakes cross it without compiler frames."""

from types import TracebackType

from .config import settings
from .errors import TilewrightError


class UserBoundary:
    """Context manager for the public entry points: `with user_boundary: ...`.

    A `TilewrightError` that leaves the block shows only the frames outside the function that holds
    the block: its traceback, cause and context are dropped. `TILEWRIGHT_DEBUG=1` keeps them. Any
    other exception passes unchanged: it comes from a callback of the user or is a compiler bug,
    and either needs its frames.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        """Nothing to set up."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Strip a designed error; never swallow anything."""
        if isinstance(error, TilewrightError) and not settings().compilation.debug:
            # The interpreter re-raises after __exit__ with the traceback found here, and adds the
            # frames that unwinding meets from there on: the caller's, not the block's own.
            error.__traceback__ = None
            error.__cause__ = None
            error.__suppress_context__ = True


user_boundary = UserBoundary()
