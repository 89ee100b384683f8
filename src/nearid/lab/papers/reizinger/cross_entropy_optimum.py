"""The optimum of the cross-entropy (Reizinger et al. 2025): logits of a trained classifier beside those of the process.

Labels i have vectors v_i, latents z are vMF(v_i, kappa), so that p(i | z) is softmax of kappa <v_i, z>. A classifier
softmax of beta <w_i, f(x)> that reaches the least cross-entropy has the same probabilities, so its logits differ from
those of the process by what all labels share: beta <w_i - w_k, f(x)> = kappa <v_i - v_k, z> for all i and k. That the
map from z to f is linear follows, for free and for normalised W, for classes and for instances (DIET).

The logits of held-out rows, less their mean over labels, are compared directly: nothing is fitted. The claim and its
threshold were written before the first run.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nearid.lab.framework.claims import Claim, all_of, at_least
from nearid.lab.framework.experiment import REIZINGER, CellData, Column, Experiment, Row, presets
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.scoreboard import dots
from nearid.lab.papers.reizinger import sections
from nearid.lab.papers.reizinger.cross_entropy import LABELS, Parameters, classifier, learned, scores_of
from nearid.moments import Floats
from nearid.show.figures import Figure

# Share of the variance of the true logits that counts as equality.
EQUAL = 0.95


def explained(model: Floats, true: Floats) -> float:
    """Share of the true logits' variance that a model's logits explain, both less their mean over labels."""
    model, true = (logits - logits.mean(axis=1, keepdims=True) for logits in (model, true))
    return 1 - float(np.sum((model - true) ** 2) / np.sum(true**2))


def cell(p: Parameters, seed: int, folder: Path) -> CellData:
    """Train a classifier and compare its logits with those of the process."""
    import torch

    model, held, curves = classifier(p, seed, folder)
    with torch.no_grad():
        features, w = learned(model, held)
        scores = scores_of(p, model, held)
    logits = explained(p.beta * features @ w.T, p.kappa * held.z @ held.vectors.T)
    return {"scores": {"logits": logits, "r2_z": scores["r2_z"], "excess": scores["excess"]}, "curves": curves}


def rows(p: Parameters) -> list[Row]:
    """Classes and instances, with normalised and with free W."""
    return [
        Row(
            f"{labels}-{'unit' if normalise else 'free'}",
            f"{labels}, {'normalised' if normalise else 'free'} W",
            {"labels": labels, "normalise": normalise},
        )
        for labels in LABELS
        for normalise in (True, False)
    ]


def figures(result: ExperimentResult) -> list[Figure]:
    """The logits of each row."""
    drawn = dots(result, ("logits",), [row.key for row in result.rows])
    return [] if drawn is None else [drawn]


ROWS = tuple(f"{labels}-{head}" for labels in LABELS for head in ("unit", "free"))

CROSS_ENTROPY_OPTIMUM = Experiment(
    name="cross-entropy-optimum",
    paper=REIZINGER,
    shows="Proof of the theorems",
    section=sections.CROSS_ENTROPY_OPTIMUM,
    about="A classifier trained by cross-entropy has the differences of logits of the process that made the data.",
    defaults=Parameters(),
    presets=presets(cpu=("about 10 minutes of one core", 5), paper=("a day on a CPU (estimated)", 5)),
    columns=(
        Column("logits", "R2 of the logits' differences", 4, most=1),
        Column("r2_z", "R2 z~->z (%)", 1, most=100),
        Column("excess", "loss above the least possible", 4),
    ),
    rows=rows,
    cell=cell,
    claims=(
        Claim(
            "Differences of logits are those of the process, beta <w_i - w_k, f(x)> = kappa <v_i - v_k, z>, for "
            f"classes and instances, with normalised and free W (held out, nothing fitted, R2 of at least {EQUAL:g}).",
            all_of(*(at_least(row, "logits", EQUAL) for row in ROWS)),
        ),
    ),
    figures=figures,
)
