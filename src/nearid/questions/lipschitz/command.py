"""`nearid lipschitz`: does a decoder preserve distances?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearid.show.columns import ExcludeOption, FeaturesOption

if TYPE_CHECKING:
    from nearid.arrays import Rows


def lipschitz(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="Weights (.safetensors .pt .pth .th .ckpt), or package.module:function for a decoder."
        ),
    ],
    latents: Annotated[
        str | None, typer.Argument(metavar="[LATENTS]", help="File with one row of latents per example.")
    ] = None,
    normal: Annotated[
        int | None, typer.Option(min=2, help="Draw so many latents from a standard normal, without a file.")
    ] = None,
    factory: Annotated[
        str | None,
        typer.Option(
            metavar="PACKAGE.MODULE:FUNCTION",
            help="Makes the module for the weights; not needed for decoders that are known (Burgess et al. 2018).",
        ),
    ] = None,
    prefix: Annotated[str | None, typer.Option(help="Part of the weights that is the decoder, as decoder.")] = None,
    width: Annotated[
        int | None, typer.Option(min=1, help="Coordinates of a latent, for --normal (those of the first layer).")
    ] = None,
    directions: Annotated[int, typer.Option(min=1, help="Random directions at each point.")] = 10,
    exact: Annotated[
        bool | None, typer.Option("--exact/--no-exact", help="Whole Jacobians (with up to 128 latents).")
    ] = None,
    points: Annotated[int, typer.Option(min=2, help="Rows to use; of more, a sample.")] = 1000,
    constant: Annotated[
        float | None, typer.Option(help="Constant c of Theorem 1's bound c sqrt(L^2 - 1), where it is known.")
    ] = None,
    key: Annotated[str | None, typer.Option(help="Entry of LATENTS to read, of a file that holds several.")] = None,
    features: FeaturesOption = None,
    exclude: ExcludeOption = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of draws, rows and directions.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report to this file.")] = None,
) -> None:
    """Does this decoder preserve distances? Its bi-Lipschitz constants, and what Theorem 1 makes of them.

    The nearer the constant is to 1, the more nearly two runs of such a model agree up to a rigid motion.
    """
    from nearid.base.errors import InputError
    from nearid.questions.compare.html import check_report

    if report is not None:
        check_report(report)
    if (latents is None) == (normal is None):
        raise InputError("Give either a file of LATENTS or --normal N draws, one of the two.")
    try:
        import torch  # noqa: F401
    except ImportError:
        raise InputError("Decoders run with torch. Install it: pip install 'nearid[lab]'") from None
    from nearid.questions.extract.weights import load_decoder
    from nearid.questions.lipschitz.run import bilipschitz

    decoder = load_decoder(model, factory=factory, prefix=prefix)
    found = bilipschitz(
        decoder,
        _latents(latents, key) if normal is None else _drawn(decoder, normal, width, seed),
        directions=directions,
        exact=exact,
        points=max(points, normal or 0),
        constant=constant,
        random_state=seed,
        name=model,
        features=features,
        exclude=exclude,
        progress=True,
    )
    from nearid.questions.lipschitz.table import render
    from nearid.show.deliver import deliver

    deliver(found, render, as_json, report)


def _latents(path: str | None, key: str | None) -> Rows:
    from nearid.arrays import open_rows

    return open_rows(path, key=key)


def _drawn(decoder: Any, count: int, width: int | None, seed: int) -> Rows:
    import numpy as np

    from nearid.arrays import open_rows
    from nearid.base.errors import InputError
    from nearid.questions.extract.weights import latent_width

    columns = width or latent_width(decoder)
    if columns is None:
        raise InputError("How many coordinates a latent has cannot be told from this decoder: give --width.")
    # A stream of its own: directions are drawn from the seed itself.
    draws = np.random.default_rng([seed, 1]).standard_normal((count, columns), dtype=np.float32)
    return open_rows(draws, name=f"{count} draws of a standard normal")
