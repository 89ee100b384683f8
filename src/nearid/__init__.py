"""nearid: are learned representations the same, are they the true ones, up to what and how nearly?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from nearid.arrays import Rows, open_rows
    from nearid.base.errors import EngineError, InputError, NearidError
    from nearid.groups.estimators import Linear, Rigid, ScaledPermutation, SignedPermutation
    from nearid.ica.estimators import Whitening
    from nearid.lab.data.load import load
    from nearid.lab.framework.result import ExperimentResult
    from nearid.lab.framework.run import reproduce
    from nearid.measures.dci import dci
    from nearid.measures.diameter import diameter
    from nearid.measures.factors import open_factors
    from nearid.measures.infomec import infomec
    from nearid.measures.mcc import mcc
    from nearid.measures.mig import mig
    from nearid.measures.modularity import explicitness, modularity
    from nearid.measures.r2 import r2
    from nearid.measures.registry import Measured
    from nearid.measures.sap import sap
    from nearid.measures.similarity import cca, linear_cka, svcca
    from nearid.questions.compare.result import Comparison, Comparisons
    from nearid.questions.compare.run import compare
    from nearid.questions.deconfound.result import Deconfounding
    from nearid.questions.deconfound.run import deconfound
    from nearid.questions.extract.result import Extraction
    from nearid.questions.extract.run import extract
    from nearid.questions.heads.result import HeadComparison
    from nearid.questions.heads.run import compare_heads
    from nearid.questions.layers.result import LayerComparison
    from nearid.questions.layers.run import compare_layers
    from nearid.questions.lipschitz.result import BiLipschitz
    from nearid.questions.lipschitz.run import lipschitz
    from nearid.questions.score.result import Score
    from nearid.questions.score.run import score
    from nearid.questions.unmix.result import ICA
    from nearid.questions.unmix.run import unmix

# Loaded on first use, so that importing nearid and asking for help cost nothing.
_HOMES = {
    "BiLipschitz": "nearid.questions.lipschitz.result",
    "Comparison": "nearid.questions.compare.result",
    "Comparisons": "nearid.questions.compare.result",
    "Deconfounding": "nearid.questions.deconfound.result",
    "EngineError": "nearid.base.errors",
    "ExperimentResult": "nearid.lab.framework.result",
    "Extraction": "nearid.questions.extract.result",
    "HeadComparison": "nearid.questions.heads.result",
    "ICA": "nearid.questions.unmix.result",
    "InputError": "nearid.base.errors",
    "LayerComparison": "nearid.questions.layers.result",
    "Linear": "nearid.groups.estimators",
    "Measured": "nearid.measures.registry",
    "NearidError": "nearid.base.errors",
    "Rigid": "nearid.groups.estimators",
    "Rows": "nearid.arrays",
    "ScaledPermutation": "nearid.groups.estimators",
    "Score": "nearid.questions.score.result",
    "SignedPermutation": "nearid.groups.estimators",
    "Whitening": "nearid.ica.estimators",
    "cca": "nearid.measures.similarity",
    "compare": "nearid.questions.compare.run",
    "compare_heads": "nearid.questions.heads.run",
    "compare_layers": "nearid.questions.layers.run",
    "dci": "nearid.measures.dci",
    "deconfound": "nearid.questions.deconfound.run",
    "diameter": "nearid.measures.diameter",
    "explicitness": "nearid.measures.modularity",
    "extract": "nearid.questions.extract.run",
    "infomec": "nearid.measures.infomec",
    "linear_cka": "nearid.measures.similarity",
    "lipschitz": "nearid.questions.lipschitz.run",
    "load": "nearid.lab.data.load",
    "mcc": "nearid.measures.mcc",
    "mig": "nearid.measures.mig",
    "modularity": "nearid.measures.modularity",
    "open_factors": "nearid.measures.factors",
    "open_rows": "nearid.arrays",
    "r2": "nearid.measures.r2",
    "reproduce": "nearid.lab.framework.run",
    "sap": "nearid.measures.sap",
    "score": "nearid.questions.score.run",
    "svcca": "nearid.measures.similarity",
    "unmix": "nearid.questions.unmix.run",
}

__all__ = [
    "ICA",
    "BiLipschitz",
    "Comparison",
    "Comparisons",
    "Deconfounding",
    "EngineError",
    "ExperimentResult",
    "Extraction",
    "HeadComparison",
    "InputError",
    "LayerComparison",
    "Linear",
    "Measured",
    "NearidError",
    "Rigid",
    "Rows",
    "ScaledPermutation",
    "Score",
    "SignedPermutation",
    "Whitening",
    "__version__",
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
    "lipschitz",
    "load",
    "mcc",
    "mig",
    "modularity",
    "open_factors",
    "open_rows",
    "r2",
    "reproduce",
    "sap",
    "score",
    "svcca",
    "unmix",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        try:
            return getattr(import_module(_HOMES[name]), name)
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise ImportError(f"nearid.{name} needs torch. Install it: pip install 'nearid[lab]'") from None
    raise AttributeError(f"module 'nearid' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
