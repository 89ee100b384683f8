"""Cautions that results carry."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Alert:
    """One caution: a stable code for programs and a sentence for people.

    Attributes
    ----------
    code : str
        Stable code of the caution, for programs.
    message : str
        What was found and what to do, in a sentence.

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
