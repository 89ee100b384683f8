"""`nearid demo`: train two autoencoders, compare them, write the report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    out: Annotated[Path, typer.Option(help="Where to write the report.")] = Path("nearid-demo.html"),
) -> None:
    """Train two small autoencoders on handwritten digits from different seeds and compare them layer by layer."""
    from nearid.base.progress import reporting
    from nearid.demo import EPOCHS, autoencoder_states, compare_layers, digits
    from nearid.questions.compare.html import check_report
    from nearid.questions.compare.page import write_report
    from nearid.questions.compare.tables import render
    from nearid.show.deliver import show

    check_report(out)
    images = digits()
    typer.echo(f"{len(images)} handwritten digits of 8 x 8 pixels; training two autoencoders (64-16-64) ...", err=True)
    with reporting() as report:
        first, second = (autoencoder_states(images, seed, report(f"seed {seed}", EPOCHS)) for seed in (0, 1))
    found = compare_layers(first, second)
    write_report(found, out, "Two autoencoders of handwritten digits, layer by layer")
    show(lambda width: render(found, width))
    typer.echo(f"Report written to {out}: open it in a browser.", err=True)
