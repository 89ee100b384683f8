"""What the figures of the contrastive experiments are drawn from, and the figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nearid.lab.framework.figures import HeatMaps, ScatterMatrix, Slot
from nearid.moments import Floats

if TYPE_CHECKING:
    from nearid.lab.framework.result import Result

# Held-out rows and coordinates in the figures.
SHOWN, PANELS = 300, 5


def views(recovered: Floats, z: Floats, observed: Floats | None = None) -> dict[str, Any]:
    """Latents, the representations matched to them, and correlations before and after."""
    from nearid.measures.mcc import mcc

    matched = recovered[:, mcc(recovered, z, folds=1).matched]
    design = np.column_stack([recovered, np.ones(len(recovered))])
    mapped = design @ np.linalg.lstsq(design, z, rcond=None)[0]

    def correlation(u: Floats) -> list[list[float]]:
        found: list[list[float]] = mcc(u, z, folds=1).matrix.round(4).tolist()
        return found

    return {
        "true": z[:SHOWN, :PANELS].round(4).tolist(),
        "recovered": matched[:SHOWN, :PANELS].round(4).tolist(),
        **({} if observed is None else {"observed": correlation(observed)}),
        "matched": correlation(matched),
        "mapped": correlation(mapped),
    }


def figures(found: Result, names: Sequence[str] = ()) -> list[Slot]:
    """The first seed of each row: latents against representations, and correlations before and after.

    Latents without names are counted.
    """
    slots: list[Slot] = []
    for row in found.rows:
        for finished in found.of_row(row.key)[:1]:
            v = finished.data["views"]
            true, recovered = np.asarray(v["true"]), np.asarray(v["recovered"])
            shown = names[: true.shape[1]] or [str(k + 1) for k in range(true.shape[1])]
            latents = names or [f"latent {k + 1}" for k in range(len(v["matched"]))]
            panels = {"observed": "observed", "matched": "recovered", "mapped": "and mapped linearly"}
            slots += [
                ScatterMatrix(
                    f"{row.title}: true against recovered",
                    f"{len(true)} held-out rows: latents (across) and the representations matched to them (down). Thin "
                    "lines on the diagonal and nothing but clouds beside it mean recovery latent by latent; where all "
                    "panels are clouds, what is left may still be a linear map.",
                    {f"true {name}": column.tolist() for name, column in zip(shown, true.T, strict=True)},
                    {f"recovered {name}": column.tolist() for name, column in zip(shown, recovered.T, strict=True)},
                ),
                HeatMaps(
                    f"{row.title}: correlation with the latents",
                    "Absolute correlation of coordinates (rows) with latents (columns): of observations that are "
                    "vectors, of the representations in the order of their latents, and of these after a linear map.",
                    {title: v[key] for key, title in panels.items() if key in v},
                    [f"coordinate {k + 1}" for k in range(len(latents))],
                    latents,
                ),
            ]
    return slots
