"""nearid: are learned representations the same, are they the true ones, up to what and how nearly?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from nearid.errors import InputError, NearidError
    from nearid.groups.estimators import Linear, Rigid, SignedPermutation
    from nearid.identifiability.result import Comparison, Comparisons
    from nearid.identifiability.statistical import compare
    from nearid.measures.diameter import diameter
    from nearid.measures.similarity import cca, linear_cka, svcca
    from nearid.unmix.estimators import ICA, Whitening

# Loaded on first use, so that importing nearid and asking for help cost nothing.
_HOMES = {
    "ICA": "nearid.unmix.estimators",
    "Comparison": "nearid.identifiability.result",
    "Comparisons": "nearid.identifiability.result",
    "InputError": "nearid.errors",
    "Linear": "nearid.groups.estimators",
    "NearidError": "nearid.errors",
    "Rigid": "nearid.groups.estimators",
    "SignedPermutation": "nearid.groups.estimators",
    "Whitening": "nearid.unmix.estimators",
    "cca": "nearid.measures.similarity",
    "compare": "nearid.identifiability.statistical",
    "diameter": "nearid.measures.diameter",
    "linear_cka": "nearid.measures.similarity",
    "svcca": "nearid.measures.similarity",
}

__all__ = [
    "ICA",
    "Comparison",
    "Comparisons",
    "InputError",
    "Linear",
    "NearidError",
    "Rigid",
    "SignedPermutation",
    "Whitening",
    "__version__",
    "cca",
    "compare",
    "diameter",
    "linear_cka",
    "svcca",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'nearid' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
