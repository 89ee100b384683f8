"""Compiled modules of scipy without their packages, whose import takes longer than a small comparison."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Any


@cache
def extension(package: str, name: str) -> Any:
    """Return a compiled module of scipy without importing its package, as ``extension("linalg", "_flapack")``.

    If another version of scipy stores the module elsewhere, the package is imported.
    """
    import scipy

    spec = PathFinder.find_spec(name, [os.path.join(scipy.__path__[0], package)])
    if spec is None or spec.loader is None:
        return import_module(f"scipy.{package}.{name}")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lapack() -> Any:
    """Return the LAPACK module of scipy."""
    return extension("linalg", "_flapack")
