"""Compiled routines of scipy alone: importing scipy.linalg or scipy.optimize takes longer than a small comparison."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Any


@cache
def compiled(package: str, name: str) -> Any:
    """One extension module of a package of scipy, loaded without the rest of the package."""
    import scipy

    spec = PathFinder.find_spec(name, [os.path.join(scipy.__path__[0], package)])
    if spec is None or spec.loader is None:
        return import_module(f"scipy.{package}.{name}")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lapack() -> Any:
    """LAPACK, as scipy.linalg calls it."""
    return compiled("linalg", "_flapack")
