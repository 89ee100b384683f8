"""Bi-Lipschitz constants of a decoder: how far it is from preserving distances, locally and between pairs."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch

from nearid import __version__
from nearid.arrays import Rows, first_nonfinite, open_rows
from nearid.arrays.metadata import metadata_alerts
from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.base.limits import check_memory
from nearid.base.options import Seed, at_least, checked
from nearid.base.progress import Progress, Reporting, reporting
from nearid.geometry.bounds import rigid_bound
from nearid.geometry.constants import PAIRED, Constants, Isometry, Pairwise
from nearid.moments import Floats
from nearid.questions.lipschitz.jacobians import Decoder, check_finite, tried
from nearid.questions.lipschitz.result import BiLipschitz

# Latents up to which the whole Jacobian is formed unless it is asked for.
EXACT = 128
# The largest constant of half of the points falls short by this share: more points would find more.
UNSETTLED = 0.05
# Singular values below this many units in the last place of the largest are rounding.
LOST = 10


@checked
def bilipschitz(
    decoder: Any,
    latents: Any,
    *,
    directions: int = 10,
    exact: bool | None = None,
    points: int = 1000,
    constant: float | None = None,
    random_state: Seed = 0,
    name: str | None = None,
    features: Iterable[str] | str | None = None,
    exclude: Iterable[str] | str | None = None,
    progress: Reporting = False,
) -> BiLipschitz:
    """Measure how a decoder stretches lengths, and the bi-Lipschitz constants that follow.

    The local constant at z is the largest of max(|J v|, 1 / |J v|) over unit vectors v, J being the decoder's Jacobian
    at z: over some random v (a lower bound, as in Nelson et al. 2026), and over all by the singular values of J.

    Parameters
    ----------
    decoder : torch.nn.Module, a method of one, or a callable
        Takes a tensor of shape (n, d) and returns one of shape (n, ...), each row on its own. A module is in evaluation
        mode meanwhile.
    latents : array, tensor, path or Rows, of shape (n, d)
        Where to measure: encodings of data, or draws of the prior.
    directions : int
        Random unit vectors at each point.
    exact : bool, optional
        Whether to form whole Jacobians; by default with up to 128 latents.
    points : int
        Random rows of the latents to use, of more.
    constant : float, optional
        Of Theorem 1's bound, given or fitted (see `nearid.geometry.bounds`); without it only the rate is told.
    random_state : int
        Seed of rows and directions.
    name : str, optional
        What to call the decoder.
    features, exclude : sequence of str or str, optional
        Columns of a table of latents to use, all numeric ones by default, and columns to leave out: names or patterns,
        as "z_*", one by one or in a text with commas.
    progress : bool
        Draw a bar on stderr for work that takes seconds.

    Returns
    -------
    BiLipschitz

    Raises
    ------
    InputError
        If the decoder gives NaN, cannot be differentiated, or does not take such latents.
    """
    rows = open_rows(latents, features=features, exclude=exclude)
    directions, points = at_least("directions", directions, 1), at_least("points", points, 2)
    random_state = at_least("random_state", random_state, 0)
    rng = np.random.default_rng(random_state)
    index = np.arange(rows.shape[0])
    if len(index) > points:
        index = np.sort(rng.choice(len(index), points, replace=False))
    z = _taken(rows, index)
    whole = z.shape[1] <= EXACT if exact is None else exact
    with reporting(progress) as report, tried(decoder, z) as known:
        sampled, singular, pairwise = _stretches(known, z, index, directions, whole, rng, report)
        mode, dtype = known.mode, str(known.dtype).removeprefix("torch.")
    if not sampled.any():
        raise InputError(
            "The decoder's derivative is 0 at every point: it is constant, or made of steps (round, argmax, sign), and "
            "no distance is preserved."
        )
    constants = Constants.of(sampled.min(axis=1), sampled.max(axis=1))
    exactly = None if singular is None else Constants.of(singular[:, -1], singular[:, 0])
    best = constants if exactly is None else exactly
    return BiLipschitz(
        name=name or _named(decoder),
        n=len(z),
        latents=z.shape[1],
        outputs=known.outputs,
        directions=directions,
        rows=index,
        sampled=constants,
        exact=exactly,
        isometry=None if singular is None else Isometry.of(singular),
        pairwise=pairwise,
        bound=rigid_bound(max(best.local.maximum.value, 1.0), constant),
        scaled_bound=rigid_bound(max(best.scale_free, 1.0), constant),
        alerts=(
            *(Alert("input", note) for note in rows.notes),
            *metadata_alerts(rows),
            *_alerts(best, exactly is not None, known.outputs, z.shape[1]),
        ),
        provenance={
            "nearid": __version__,
            "torch": str(torch.__version__),
            "python": platform.python_version(),
            "options": {
                "directions": directions,
                "exact": whole,
                "points": points,
                "constant": constant,
                "random_state": random_state,
            },
            "mode": mode,
            "dtype": dtype,
            "latents": {"name": rows.name, "shape": list(rows.shape), "fingerprint": rows.fingerprint()},
        },
    )


def _taken(rows: Rows, index: np.ndarray) -> Floats:
    z = rows.take(index)
    bad = first_nonfinite(z, 0)
    if bad is not None:
        raise InputError(
            f"{rows.name} has {bad[2]} at row {index[bad[0]]}, column {bad[1]} (counted from 0), but latents "
            "must be finite."
        )
    return z


def _stretches(
    known: Decoder,
    z: Floats,
    index: np.ndarray,
    directions: int,
    whole: bool,
    rng: np.random.Generator,
    report: Progress,
) -> tuple[Floats, Floats | None, Pairwise]:
    """Lengths |J v| of shape (n, directions), singular values (n, d) where asked for, and distances of pairs."""
    n, d = z.shape
    vectors = _directions(directions, n, d, rng)
    # Files are often in some order: of more rows than can be paired, random ones.
    paired = np.arange(n) if n <= PAIRED else np.sort(rng.choice(n, PAIRED, replace=False))
    step = known.batch_rows(d if whole else directions)
    starts = range(0, n, step)
    tick = report("derivatives", len(starts))
    lengths, singular, outputs = [], [], []
    for start in starts:
        rows = slice(start, start + step)
        latents, along = known.latents(z[rows]), known.latents(vectors[:, rows])
        axes = torch.eye(d, dtype=known.dtype, device=known.device)[:, None].expand(d, len(latents), d)
        out, pushed = known.push(latents, axes if whole else along)
        check_finite("The decoder gives", out, index[rows])
        check_finite("The decoder is not differentiable: its derivative is", pushed, index[rows])
        if whole:
            # The columns of the Jacobians; directions are combinations of them.
            singular.append(_singular_values(pushed))
            pushed = torch.einsum("knd,dnm->knm", along, pushed)
        lengths.append(torch.linalg.vector_norm(pushed.double(), dim=2).T.cpu().numpy())
        here = paired[slice(*np.searchsorted(paired, [start, start + step]))] - start
        outputs.append(out.cpu().numpy()[here])
        tick()
    return (
        np.concatenate(lengths),
        np.concatenate(singular) if whole else None,
        Pairwise.of(z[paired], np.concatenate(outputs)),
    )


def _directions(directions: int, n: int, d: int, rng: np.random.Generator) -> Floats:
    """Random unit vectors of shape (directions, n, d)."""
    what = f"Drawing {directions} directions at {n} points of {d} latents"
    check_memory(what, 8 * directions * n * d, "Take fewer points or fewer directions.")
    vectors = rng.standard_normal((directions, n, d))
    for v in vectors:  # one by one, as lengths of all at once take twice the memory again
        v /= np.linalg.norm(v, axis=1, keepdims=True)
    return vectors


def _singular_values(columns: torch.Tensor) -> Floats:
    """Singular values, descending, of Jacobians given as (d, n, m); those lost in rounding are 0."""
    d, _, m = columns.shape
    jacobians = columns.permute(1, 2, 0).double()
    # The triangular factor has the same singular values, and is small however many outputs there are.
    values = torch.linalg.svdvals(torch.linalg.qr(jacobians, mode="r").R)
    values = torch.where(values > LOST * torch.finfo(columns.dtype).eps * values[:, :1], values, 0.0)
    # With fewer outputs than latents, some directions are lost.
    return np.pad(values.cpu().numpy(), ((0, 0), (0, max(d - m, 0))))


def _alerts(best: Constants, exact: bool, outputs: int, latents: int) -> Iterator[Alert]:
    n = len(best.least)
    if outputs < latents:
        yield Alert("fewer_outputs", f"{outputs} outputs of {latents} latents: no such decoder is injective.")
    lost = int(np.sum(best.least == 0))
    if lost:
        yield Alert(
            "not_injective",
            f"At {lost} of {n} points some direction of the latents changes nothing (to rounding): the decoder is not "
            "injective there, no finite constant exists, and the theorems do not apply.",
        )
    if not exact:
        yield Alert(
            "directions_only",
            f"With {latents} latents, some random directions miss the largest and smallest stretch: the constants are "
            "lower bounds. exact=True (--exact) takes whole Jacobians.",
        )
    largest = best.local.maximum
    if np.isfinite(largest.value) and largest.of_half < (1 - UNSETTLED) * largest.value:
        yield Alert(
            "unsettled_maximum",
            f"The maximum has not settled: half of the points reach {largest.of_half:.3g} on average, all {n} "
            f"{largest.value:.3g}. More points would find more.",
        )


def _named(decoder: Any) -> str:
    return str(getattr(decoder, "__name__", type(decoder).__name__))
