"""Alerts that results carry: what limits or qualifies an answer."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Alert:
    """An alert of a result: a stable code for programs and a message for people.

    Attributes
    ----------
    code : str
        Stable code of the alert, for programs.
    message : str
        What nearid found and what to do about it.

    Examples
    --------
    >>> import numpy as np
    >>> import nearid
    >>> x = np.random.default_rng(0).normal(size=(60, 2))
    >>> [alert.code for alert in nearid.compare(x, x).alerts]
    ['same_input']
    """

    code: str
    message: str
