"""Errors that nearid raises on purpose, each a sentence that helps."""


class NearidError(ValueError):
    """Base of all errors raised on purpose."""


class InputError(NearidError):
    """An input cannot be used as it is."""


class ReadError(InputError):
    """Rows were opened, but are out of reach now: the file is gone, or its disk fails."""


class EngineError(NearidError):
    """The engine that is to run the passes cannot be had, or was lost."""
