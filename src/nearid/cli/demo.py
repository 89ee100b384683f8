"""`nearid demo`: train two autoencoders, compare them, write the report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[Path, typer.Option(help="Where to write the report.")] = Path("nearid-demo.html"),
) -> None:
    """Train two small autoencoders on handwritten digits from different seeds and compare them layer by layer."""
    from nearid.base.progress import reporting
    from nearid.demo import EPOCHS, autoencoder_states, compare_layers, digits
    from nearid.show.deliver import show
    from nearid.show.page import check_report, write
    from nearid.show.terminal import render

    check_report(out)
    images = digits()
    typer.echo(f"{len(images)} handwritten digits of 8 x 8 pixels; training two autoencoders (64-16-64) ...", err=True)
    with reporting() as report:
        first, second = (autoencoder_states(images, seed, report(f"seed {seed}", EPOCHS)) for seed in (0, 1))
    comparisons = compare_layers(first, second)
    view = replace(comparisons.view, question="Two autoencoders of handwritten digits, layer by layer")
    write(view, out)
    show(lambda width: render(view, width))
    typer.echo(f"Report written to {out}: open it in a browser.", err=True)
