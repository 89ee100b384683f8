"""What a reader should know before trusting a score, as codes and sentences."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from nearid.base.alerts import Alert
from nearid.measures.factors import Factors
from nearid.moments import Floats
from nearid.questions.score.result import Measured

# Variance of standardised latents below which a direction counts as gone.
COLLAPSED = 1e-4


def sample_alerts(n: int, x: Floats, taken: Factors, known: Factors, alerts: tuple[Alert, ...]) -> tuple[Alert, ...]:
    """Alerts of a sample, without those that are told of all rows elsewhere."""
    kept = [a for a in alerts if a.code not in ("dropped_rows", "constant_factor") or a in known.alerts]
    text = (
        f"Of {n:,} rows {len(x):,} are given to the measures that hold them in memory; mcc, r2 and the verdict use all."
    )
    kept.append(Alert("sampled", text))
    lost = [repr(name) for name in known.names if name not in taken.names]
    if lost:
        kept.append(
            Alert("constant_in_sample", f"In that sample {', '.join(lost)} do not vary; mcc and r2 see them alone.")
        )
    return tuple(kept)


def without_interval(measured: dict[str, Measured]) -> Iterable[Alert]:
    """Measures whose spread is not known."""
    lacking = [name for name, m in measured.items() if np.isnan(m.overall.low) and not np.isnan(m.value)]
    if lacking:
        yield Alert(
            "no_interval",
            f"{', '.join(lacking)}: no interval. Without some of the rows too few are left, or factors do not vary.",
        )


def latent_alerts(x: Floats, active: np.ndarray, factors: Factors) -> Iterable[Alert]:
    """Latents that hardly vary, or vary together."""
    still = np.ptp(x / 2, axis=0) == 0
    small = np.flatnonzero(~active & ~still)
    d, m = x.shape[1], len(factors.items)
    if len(small):
        shown = ", ".join(map(str, small[:5])) + (" ..." if len(small) > 5 else "")
        yield Alert(
            "inactive_latents",
            f"{len(small)} of {d} latents ({shown}) vary by less than a twentieth of the widest: they are inactive, "
            "and do not count in InfoM and InfoC.",
        )
    live = x[:, ~still]
    if live.shape[1] > 1:
        directions = _directions(live)
        if directions < min(live.shape[1], m):
            yield Alert(
                "collapsed_latents",
                f"The {live.shape[1]} latents that vary do so along {directions} directions (to 1% of their spread): "
                f"these cannot hold {m} factors.",
            )


def _directions(live: Floats) -> int:
    """Directions along which standardised latents vary, of rows x that all vary."""
    standard = live / np.abs(live).max(axis=0)
    standard -= standard.mean(axis=0)
    standard /= np.linalg.norm(standard, axis=0)
    # Latents have as many correlations among them as they are, rows as many: the fewer tell the same.
    products = standard.T @ standard if live.shape[1] <= len(live) else standard @ standard.T
    return int(np.sum(np.linalg.eigvalsh(products) > COLLAPSED))
