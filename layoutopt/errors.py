"""The errors that a user can meet."""

from __future__ import annotations


class LayoutoptError(Exception):
    """Base of all errors that this package raises on purpose."""


class InputError(LayoutoptError, ValueError):
    """Something given by the user cannot be used.

    Parameters
    ----------
    reason
        What is wrong and what is allowed, in one line.
    place
        Where inside the input, for instance ``$.ops[3].permutation``; empty if the
        input has no inner places.
    file
        The file's name, empty if the input is no file.
    """

    def __init__(self, reason: str, place: str = "", file: str = "") -> None:
        self.reason = reason
        self.place = place
        self.file = file
        text = ": ".join(part for part in (file, place, reason) if part)
        super().__init__(" ".join(text.splitlines()))  # what is quoted may hold line breaks

    def located(self, place: str = "", file: str = "") -> InputError:
        """Return the same error with a place or file added where it had none."""
        return InputError(self.reason, self.place or place, self.file or file)


class SizeError(InputError):
    """The input is legal but needs more memory than this machine has."""


class SolverError(LayoutoptError):
    """A solver failed on a problem that it should take."""


class InternalError(LayoutoptError):
    """Two independent computations disagree: a defect of this package, never an answer."""
