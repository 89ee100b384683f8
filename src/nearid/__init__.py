"""nearid: are learned representations the same, are they the true ones, up to what and how nearly?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from nearid.arrays.extraction import Extraction
    from nearid.deconfounding.result import Deconfounding
    from nearid.deconfounding.run import deconfound
    from nearid.errors import InputError, NearidError
    from nearid.extraction.job import extract
    from nearid.geometry.bilipschitz import bilipschitz
    from nearid.groups.estimators import Linear, Rigid, SignedPermutation
    from nearid.identifiability.head_result import HeadComparison
    from nearid.identifiability.heads import compare_heads
    from nearid.identifiability.layer_result import LayerComparison
    from nearid.identifiability.layers import compare_layers
    from nearid.identifiability.result import Comparison, Comparisons
    from nearid.identifiability.score import Score
    from nearid.identifiability.statistical import compare
    from nearid.identifiability.structural import score
    from nearid.measures.dci import dci
    from nearid.measures.diameter import diameter
    from nearid.measures.factors import open_factors
    from nearid.measures.infomec import infomec
    from nearid.measures.mcc import mcc
    from nearid.measures.mig import mig
    from nearid.measures.modularity import explicitness, modularity
    from nearid.measures.r2 import r2
    from nearid.measures.sap import sap
    from nearid.measures.similarity import cca, linear_cka, svcca
    from nearid.unmix.estimators import ICA, Whitening

# Loaded on first use, so that importing nearid and asking for help cost nothing.
_HOMES = {
    "Comparison": "nearid.identifiability.result",
    "Comparisons": "nearid.identifiability.result",
    "Deconfounding": "nearid.deconfounding.result",
    "Extraction": "nearid.arrays.extraction",
    "HeadComparison": "nearid.identifiability.head_result",
    "ICA": "nearid.unmix.estimators",
    "InputError": "nearid.errors",
    "LayerComparison": "nearid.identifiability.layer_result",
    "Linear": "nearid.groups.estimators",
    "NearidError": "nearid.errors",
    "Rigid": "nearid.groups.estimators",
    "Score": "nearid.identifiability.score",
    "SignedPermutation": "nearid.groups.estimators",
    "Whitening": "nearid.unmix.estimators",
    "bilipschitz": "nearid.geometry.bilipschitz",
    "cca": "nearid.measures.similarity",
    "compare": "nearid.identifiability.statistical",
    "compare_heads": "nearid.identifiability.heads",
    "compare_layers": "nearid.identifiability.layers",
    "dci": "nearid.measures.dci",
    "deconfound": "nearid.deconfounding.run",
    "diameter": "nearid.measures.diameter",
    "explicitness": "nearid.measures.modularity",
    "extract": "nearid.extraction.job",
    "infomec": "nearid.measures.infomec",
    "linear_cka": "nearid.measures.similarity",
    "mcc": "nearid.measures.mcc",
    "mig": "nearid.measures.mig",
    "modularity": "nearid.measures.modularity",
    "open_factors": "nearid.measures.factors",
    "r2": "nearid.measures.r2",
    "sap": "nearid.measures.sap",
    "score": "nearid.identifiability.structural",
    "svcca": "nearid.measures.similarity",
}

__all__ = [
    "ICA",
    "Comparison",
    "Comparisons",
    "Deconfounding",
    "Extraction",
    "HeadComparison",
    "InputError",
    "LayerComparison",
    "Linear",
    "NearidError",
    "Rigid",
    "Score",
    "SignedPermutation",
    "Whitening",
    "__version__",
    "bilipschitz",
    "cca",
    "compare",
    "compare_heads",
    "compare_layers",
    "dci",
    "deconfound",
    "diameter",
    "explicitness",
    "extract",
    "infomec",
    "linear_cka",
    "mcc",
    "mig",
    "modularity",
    "open_factors",
    "r2",
    "sap",
    "score",
    "svcca",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'nearid' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
