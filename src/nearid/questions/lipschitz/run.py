"""Does a decoder preserve distances? Its bi-Lipschitz constants, locally and between pairs."""

import os
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import numpy as np

from nearid.arrays import Rows, first_nonfinite, open_rows
from nearid.arrays.metadata import metadata_alerts
from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.base.options import Bound, Count, Seed, checked
from nearid.base.progress import Reporting, reporting
from nearid.base.provenance import provenance
from nearid.geometry.bounds import rigid_bound
from nearid.geometry.constants import Constants, Isometry
from nearid.moments import Floats
from nearid.questions.extract.given import given_model
from nearid.questions.lipschitz.result import BiLipschitz

# Latents up to which the whole Jacobian is formed by default.
EXACT = 128
# The largest constant of half of the points falls short by this share: more points would find more.
UNSETTLED = 0.05


@checked
def lipschitz(
    model: Any,
    latents: Any = None,
    *,
    normal: Annotated[int, Bound(2)] | None = None,
    width: Count | None = None,
    factory: str | None = None,
    prefix: str | None = None,
    directions: Count = 10,
    exact: bool | None = None,
    points: Annotated[int, Bound(2)] = 1000,
    constant: Annotated[float, Bound(0, open_low=True)] | None = None,
    key: str | None = None,
    features: Iterable[str] | str | None = None,
    exclude: Iterable[str] | str | None = None,
    random_state: Seed = 0,
    name: str | None = None,
    progress: Reporting = False,
) -> BiLipschitz:
    """Does this decoder preserve distances? Its bi-Lipschitz constants, and what Theorem 1 makes of them.

    The nearer the constant is to 1, the more nearly two runs of such a model agree up to a rigid motion. The local
    constant at z is the largest of max(|J v|, 1 / |J v|) over unit vectors v, J being the decoder's Jacobian at z: over
    some random v (a lower bound, as in Nelson et al. 2026), and over all by the singular values of J.

    Parameters
    ----------
    model : torch.nn.Module, a method of one, a callable, or str
        The decoder: weights (.safetensors .pt .pth .th .ckpt) or package.module:function for a decoder. In Python also
        a function that takes a tensor of shape (n, d) and returns one of shape (n, ...), each row on its own. A module
        is in evaluation mode meanwhile.
    latents : array, tensor, path or Rows, of shape (n, d), optional
        Where to measure, one row of latents per example: encodings of data, or draws of the prior.
    normal : int, optional
        Draw so many latents from a standard normal instead.
    width : int, optional
        Coordinates of a latent, for normal draws; those of the first layer by default.
    factory : str, optional
        package.module:function that makes the module for the weights; not needed for decoders that are known (Burgess
        et al. 2018).
    prefix : str, optional
        Part of the weights that is the decoder, as "decoder.".
    directions : int, default=10
        Random directions at each point.
    exact : bool, optional
        Whether to form whole Jacobians; by default with up to 128 latents.
    points : int, default=1000
        Rows to use; of more, a random sample.
    constant : float, optional
        Constant c of Theorem 1's bound c sqrt(L^2 - 1), where it is known (see nearid.geometry.bounds). Without it only
        the rate is reported.
    key : str, optional
        Entry of the latents to read, of a file that holds several.
    features : sequence of str or str, optional
        Columns of a table to use, as "z_*,size"; all numeric columns by default.
    exclude : sequence of str or str, optional
        Columns of a table to leave out, as "plate,well_*": metadata, for example.
    random_state : int, default=0
        Seed of draws, rows and directions.
    name : str, optional
        What to call the decoder.
    progress : bool or callable, default=False
        Draw a bar on stderr for work that takes seconds.

    Returns
    -------
    BiLipschitz

    Raises
    ------
    InputError
        If the decoder gives NaN, cannot be differentiated, or does not take such latents.

    Examples
    --------
    >>> import numpy as np
    >>> import nearid
    >>> stretches = nearid.lipschitz(lambda z: 2 * z, np.random.default_rng(0).normal(size=(50, 3)))
    >>> stretches.exact.local.maximum.value, stretches.exact.scale_free
    (2.0, 1.0)
    """
    if (latents is None) == (normal is None):
        raise InputError("Give either LATENTS or a number of draws, normal=N (--normal N), one of the two.")
    if isinstance(model, str | os.PathLike):
        given_model(model, factory=factory, prefix=prefix, decoder=True)
    try:
        import torch
    except ImportError:
        raise InputError("Decoders run with torch. Install it: pip install 'nearid[lab]'") from None
    from nearid.questions.extract.weights import load_decoder
    from nearid.questions.lipschitz.jacobians import stretches, tried

    decoder = model
    if isinstance(model, str | os.PathLike):
        decoder = load_decoder(os.fspath(model), factory=factory, prefix=prefix)
    elif factory is not None or prefix is not None:
        raise InputError("A factory or a prefix belongs to a file of weights, but the decoder itself was given.")
    if normal is None:
        rows = open_rows(latents, key=key, features=features, exclude=exclude)
    else:
        points, rows = max(points, normal), _drawn(decoder, normal, width, random_state)
    rng = np.random.default_rng(random_state)
    index = np.arange(rows.shape[0])
    if len(index) > points:
        index = np.sort(rng.choice(len(index), points, replace=False))
    z = _taken(rows, index)
    whole = z.shape[1] <= EXACT if exact is None else exact
    with reporting(progress) as stage, tried(decoder, z) as working:
        lengths, singular, pairwise = stretches(working, z, index, directions, whole, rng, stage)
    if not lengths.any():
        raise InputError(
            "The decoder's derivative is 0 at every point: it is constant, or made of steps (round, argmax, sign), and "
            "no distance is preserved."
        )
    sampled = Constants.of(lengths.min(axis=1), lengths.max(axis=1))
    exactly = None if singular is None else Constants.of(singular[:, -1], singular[:, 0])
    best = sampled if exactly is None else exactly
    options = {
        "normal": normal,
        "width": width,
        "factory": factory,
        "prefix": prefix,
        "directions": directions,
        "exact": whole,
        "points": points,
        "constant": constant,
        "random_state": random_state,
    }
    return BiLipschitz(
        name=name or (os.fspath(model) if decoder is not model else _called(decoder)),
        n=len(z),
        latents=z.shape[1],
        outputs=working.outputs,
        directions=directions,
        rows=index,
        sampled=sampled,
        exact=exactly,
        isometry=None if singular is None else Isometry.of(singular),
        pairwise=pairwise,
        bound=rigid_bound(max(best.local.maximum.value, 1.0), constant),
        scaled_bound=rigid_bound(max(best.scale_free, 1.0), constant),
        alerts=(
            *(Alert("input", note) for note in rows.notes),
            *metadata_alerts(rows),
            *_alerts(best, exactly is not None, working.outputs, z.shape[1]),
        ),
        provenance=provenance(
            options,
            [(latents if normal is None else rows, rows)],
            torch=torch.__version__,
            mode=working.mode,
            dtype=str(working.dtype).removeprefix("torch."),
        ),
    )


def _drawn(decoder: Any, count: int, width: int | None, seed: int) -> Rows:
    from nearid.questions.extract.weights import latent_width

    columns = width or latent_width(decoder)
    if columns is None:
        raise InputError(
            "nearid cannot tell from this decoder how many coordinates a latent has: give width=N (--width N)."
        )
    # A stream of its own: directions are drawn from the seed itself.
    draws = np.random.default_rng([seed, 1]).standard_normal((count, columns), dtype=np.float32)
    return open_rows(draws, name=f"{count} draws of a standard normal")


def _taken(rows: Rows, index: np.ndarray) -> Floats:
    z = rows.take(index)
    bad = first_nonfinite(z, 0)
    if bad is not None:
        raise InputError(
            f"{rows.name} has {bad[2]} at row {index[bad[0]]}, column {bad[1]} (counted from 0), but latents "
            "must be finite."
        )
    return z


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


def _called(decoder: Any) -> str:
    return str(getattr(decoder, "__name__", type(decoder).__name__))
