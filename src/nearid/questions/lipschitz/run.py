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
# If the largest constant of half of the points is smaller by this share, more points would find a larger one.
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
    """Return how much a decoder changes distances: its local bi-Lipschitz constants.

    The closer the constant L is to 1, the more closely two runs of such a model agree up to a rigid motion (Theorem 1
    of Nelson et al. 2026). The local constant at z is the largest of ``max(|J v|, 1 / |J v|)`` over unit vectors v,
    where J is the decoder's Jacobian at z. nearid computes it over random v, as in the paper, which gives a lower
    bound, and over all v from the singular values of J.

    Parameters
    ----------
    model : torch.nn.Module, a method of one, a callable, or str
        The decoder: a file of weights (.safetensors .pt .pth .th .ckpt), or package.module:function that returns the
        decoder. In Python also a module or a function that takes a tensor of shape (n, d) and returns one of shape
        (n, ...). Each row must depend only on itself. A module runs in evaluation mode.
    latents : array, tensor, path or Rows, of shape (n, d), optional
        Points to measure at, one row of latents per example: encodings of data, or draws from the prior.
    normal : int, optional
        Instead of latents: number of points to draw from a standard normal distribution.
    width : int, optional
        Number of coordinates of a latent for normal draws. Default: the inputs of the first layer.
    factory : str, optional
        package.module:function that makes the module for a file of weights. The decoder of Burgess et al. (2018) is
        known and needs none.
    prefix : str, optional
        Beginning of the names of the decoder's weights in the file, such as "decoder.".
    directions : int, default=10
        Number of random directions at each point.
    exact : bool, optional
        Whether to form whole Jacobians. Default: with up to 128 latents.
    points : int, default=1000
        Largest number of rows to use. If there are more, nearid takes a random sample.
    constant : float, optional
        Constant c of Theorem 1's bound c sqrt(L^2 - 1), if you know it (see nearid.geometry.bounds). Default: nearid
        reports the rate sqrt(L^2 - 1) alone.
    key : str, optional
        Entry that holds the latents, in a file with several.
    features : sequence of str or str, optional
        Columns of a table to use, such as "z_*,size". Default: all numeric columns.
    exclude : sequence of str or str, optional
        Columns of a table to leave out, such as "plate,well_*".
    random_state : int, default=0
        Seed of draws, rows and directions.
    name : str, optional
        Name of the decoder in the output.
    progress : bool or callable, default=False
        Whether to draw progress bars on stderr; or a function that takes the name of a stage and its number of steps.

    Returns
    -------
    BiLipschitz
        The constants over random and over all directions, the spectrum of the Jacobians, and Theorem 1.

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
        raise InputError("Give either latents, or a number of random draws with normal=N (--normal N).")
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
        raise InputError("factory and prefix are for files of weights, but the decoder itself was given.")
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
            "The decoder's derivative is 0 at every point. It is constant, or made of steps (round, argmax, sign), so "
            "it preserves no distance."
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
            "nearid cannot see from this decoder how many coordinates a latent has. Give width=N (--width N)."
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
        yield Alert(
            "fewer_outputs", f"The decoder has {outputs} outputs for {latents} latents, so it cannot be injective."
        )
    lost = int(np.sum(best.least == 0))
    if lost:
        yield Alert(
            "not_injective",
            f"At {lost} of {n} points some direction of the latents changes no output (to rounding). The decoder is "
            "not injective there. It has no finite constant, and the theorems do not apply.",
        )
    if not exact:
        yield Alert(
            "directions_only",
            f"Only random directions of the {latents} latents were measured. They miss the largest and the smallest "
            "stretch, so the constants are lower bounds. To form whole Jacobians: exact=True (--exact).",
        )
    largest = best.local.maximum
    if np.isfinite(largest.value) and largest.of_half < (1 - UNSETTLED) * largest.value:
        yield Alert(
            "unsettled_maximum",
            f"The maximum is not stable: a random half of the points reaches {largest.of_half:.3g} on average, all "
            f"{n} points reach {largest.value:.3g}. More points would find a larger one.",
        )


def _called(decoder: Any) -> str:
    return str(getattr(decoder, "__name__", type(decoder).__name__))
