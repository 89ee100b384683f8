"""The ladder of groups from latents to known factors, and what it says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from nearid.arrays import Rows, pair_rows
from nearid.base.alerts import Alert
from nearid.base.progress import Progress
from nearid.engines.base import Engine
from nearid.groups.fits import fit_scaled_permutation
from nearid.groups.ladder import GROUPS
from nearid.measures.factors import Factors
from nearid.moments import Floats
from nearid.questions.compare.result import Comparison
from nearid.questions.compare.run import Settings, compare_pair
from nearid.questions.compare.verdict import Verdict

# Factors come in units of their own: a match may have any scale.
MATCH = replace(
    GROUPS["permutation"],
    fit=fit_scaled_permutation,
    options=("translation",),
    degrees_of_freedom=lambda p, q: 2 * min(p, q) + q,
)
# A group that leaves 1% of the factors' variance (a root-mean-square error of a tenth of their spread) has recovered
# them nearly exactly. Without that allowance a linear map would always win where it is exact: the components that ICA
# finds in a sample, and the factors' units, never are.
NEGLIGIBLE = 0.1
# Alerts of a comparison that mean nothing where the target is the truth.
ELSEWHERE = ("widths_differ", "input")


def factor_ladder(
    rows: Rows,
    factors: Factors,
    *,
    folds: int,
    drop_nonfinite: bool,
    seed: int,
    origins: dict[str, str],
    engine: Engine,
    report: Progress,
) -> tuple[Comparison | None, Verdict, tuple[Alert, ...]]:
    """The ladder of groups from the latents to the factors, and what it says."""
    target = factors.geometry
    if target is None:
        reason = "All factors are categorical: classes have no geometry that a group could keep. See the measures."
        return None, Verdict("undefined", reason, "undefined", None), (Alert("no_geometry", reason),)
    left = [repr(f.name) for f in factors.items if f.kind == "categorical"]
    alerts: tuple[Alert, ...] = ()
    if left:
        text = f"Categorical factors have no geometry: the verdict is without {', '.join(left)}."
        alerts += (Alert("no_geometry", text),)
    settings = Settings(
        groups=(MATCH, GROUPS["rigid"], GROUPS["linear"]),
        folds=folds,
        options={"translation": True, "scale": True, "ridge": 0.0},
        svcca_k=None,
        in_sample=False,
        drop_nonfinite=drop_nonfinite,
        permutations=None,
        random_state=seed,
        negligible=NEGLIGIBLE,
    )
    found = compare_pair(pair_rows(rows, target), (rows, target), settings, engine, report)
    told = tuple(a for a in found.alerts if a.code not in ELSEWHERE)
    return found, found.verdict, alerts + told


def aligned(factors: Factors, x: Floats, taken: Factors, matched: Mapping[str, int | None]) -> Factors:
    """Factors with each angle counted from where its matched latent is largest, as some rows x, taken tell.

    Where an angle begins is a convention, and must not decide whether cosine and sine are found by permuting latents.
    """
    at_hand = {f.name: f for f in taken.items}
    turned = []
    for factor in factors.items:
        latent = matched.get(factor.name)
        if factor.period is not None and latent is not None and factor.name in at_hand:
            design = np.column_stack([at_hand[factor.name].columns, np.ones(len(x))])
            cosine, sine, _ = np.linalg.lstsq(design, x[:, latent] - x[:, latent].mean(), rcond=None)[0]
            origin = np.arctan2(sine, cosine) / (2 * np.pi) * factor.period
            factor = replace(factor, values=factor.values - origin)
        turned.append(factor)
    return replace(factors, items=tuple(turned))
