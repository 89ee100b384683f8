"""Ctrl-C on its way out."""

from __future__ import annotations


class Interrupted(BaseException):
    """Ctrl-C, in a form that no library in between takes for its own.

    Attributes
    ----------
    left : str
        What the interrupted work has left behind; a command that leaves something says so here.
    """

    left = "nothing was written"
