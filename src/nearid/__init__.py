"""nearid: are learned representations the same, are they the true ones, up to what and how nearly?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

if TYPE_CHECKING:
    from nearid.arrays.open import open_rows as open_rows
    from nearid.arrays.rows import Rows as Rows
    from nearid.base.alerts import Alert as Alert
    from nearid.base.errors import EngineError as EngineError, InputError as InputError, NearidError as NearidError
    from nearid.base.estimate import Estimate as Estimate
    from nearid.groups.estimators import (
        Linear as Linear,
        Rigid as Rigid,
        ScaledPermutation as ScaledPermutation,
        SignedPermutation as SignedPermutation,
    )
    from nearid.ica.estimators import (
        IdentifiabilityWarning as IdentifiabilityWarning,
        MetadataWarning as MetadataWarning,
        RankWarning as RankWarning,
        Whitening as Whitening,
    )
    from nearid.lab.data.load import load as load
    from nearid.lab.framework.result import ExperimentResult as ExperimentResult
    from nearid.lab.framework.run import reproduce as reproduce
    from nearid.measures.dci import dci as dci
    from nearid.measures.diameter import diameter as diameter
    from nearid.measures.factors import open_factors as open_factors
    from nearid.measures.infomec import infomec as infomec
    from nearid.measures.mcc import mcc as mcc
    from nearid.measures.mig import mig as mig
    from nearid.measures.modularity import explicitness as explicitness, modularity as modularity
    from nearid.measures.r2 import r2 as r2
    from nearid.measures.registry import Measured as Measured
    from nearid.measures.sap import sap as sap
    from nearid.measures.similarity import cca as cca, linear_cka as linear_cka, svcca as svcca
    from nearid.questions.compare.result import Comparison as Comparison, Comparisons as Comparisons
    from nearid.questions.compare.run import compare as compare
    from nearid.questions.deconfound.result import Deconfounding as Deconfounding
    from nearid.questions.deconfound.run import deconfound as deconfound
    from nearid.questions.extract.result import Extraction as Extraction
    from nearid.questions.extract.run import extract as extract
    from nearid.questions.heads.result import HeadComparison as HeadComparison
    from nearid.questions.heads.run import compare_heads as compare_heads
    from nearid.questions.layers.result import LayerComparison as LayerComparison
    from nearid.questions.layers.run import compare_layers as compare_layers
    from nearid.questions.lipschitz.result import BiLipschitz as BiLipschitz
    from nearid.questions.lipschitz.run import lipschitz as lipschitz
    from nearid.questions.models.result import ModelComparison as ModelComparison
    from nearid.questions.models.run import compare_models as compare_models
    from nearid.questions.score.result import Score as Score
    from nearid.questions.score.run import score as score
    from nearid.questions.unmix.result import ICA as ICA
    from nearid.questions.unmix.run import unmix as unmix

# Where the public names live. They are loaded on first use, so that importing nearid and asking for help cost nothing.
_NAMES = {
    "arrays.open": "open_rows",
    "arrays.rows": "Rows",
    "base.alerts": "Alert",
    "base.errors": "EngineError InputError NearidError",
    "base.estimate": "Estimate",
    "groups.estimators": "Linear Rigid ScaledPermutation SignedPermutation",
    "ica.estimators": "IdentifiabilityWarning MetadataWarning RankWarning Whitening",
    "lab.data.load": "load",
    "lab.framework.result": "ExperimentResult",
    "lab.framework.run": "reproduce",
    "measures.dci": "dci",
    "measures.diameter": "diameter",
    "measures.factors": "open_factors",
    "measures.infomec": "infomec",
    "measures.mcc": "mcc",
    "measures.mig": "mig",
    "measures.modularity": "explicitness modularity",
    "measures.r2": "r2",
    "measures.registry": "Measured",
    "measures.sap": "sap",
    "measures.similarity": "cca linear_cka svcca",
    "questions.compare.result": "Comparison Comparisons",
    "questions.compare.run": "compare",
    "questions.deconfound.result": "Deconfounding",
    "questions.deconfound.run": "deconfound",
    "questions.extract.result": "Extraction",
    "questions.extract.run": "extract",
    "questions.heads.result": "HeadComparison",
    "questions.heads.run": "compare_heads",
    "questions.layers.result": "LayerComparison",
    "questions.layers.run": "compare_layers",
    "questions.lipschitz.result": "BiLipschitz",
    "questions.lipschitz.run": "lipschitz",
    "questions.models.result": "ModelComparison",
    "questions.models.run": "compare_models",
    "questions.score.result": "Score",
    "questions.score.run": "score",
    "questions.unmix.result": "ICA",
    "questions.unmix.run": "unmix",
}
_HOMES = {name: f"nearid.{home}" for home, names in _NAMES.items() for name in names.split()}

__all__ = sorted(["__version__", *_HOMES])


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
