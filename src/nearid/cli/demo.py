"""`nearid demo`: train two small autoencoders of handwritten digits, compare them layer by layer, write the report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearid.show.command import QUIET
from nearid.show.help import OUTPUT, guided

if TYPE_CHECKING:
    from nearid.moments import Floats
    from nearid.questions.compare.result import Comparisons

LAYERS = (64, 16, 64)
EPOCHS = 150


def digits() -> Floats:
    """The 1,797 handwritten 8 x 8 digits that ship with scikit-learn, in [0, 1]."""
    from sklearn.datasets import load_digits

    images: Floats = load_digits().data / 16
    return images


def autoencoder_states(images: Floats, seed: int, tick: Callable[[], object] | None = None) -> list[Floats]:
    """Train a tanh autoencoder 64 -> 64 -> 16 -> 64 -> 64 from a seed; states of its three hidden layers and output."""
    import numpy as np
    from sklearn.neural_network import MLPRegressor

    model = MLPRegressor(
        hidden_layer_sizes=LAYERS, activation="tanh", batch_size=64, learning_rate_init=2e-3, random_state=seed
    )
    for _ in range(EPOCHS):
        model.partial_fit(images, images)
        if tick:
            tick()
    states, state = [], images
    for weights, bias in zip(model.coefs_[:-1], model.intercepts_[:-1], strict=True):
        state = np.tanh(state @ weights + bias)
        states.append(state)
    return [*states, state @ model.coefs_[-1] + model.intercepts_[-1]]


def layer_names() -> list[str]:
    """Names of the compared layers."""
    return [f"hidden {k} ({width})" for k, width in enumerate(LAYERS, start=1)] + ["output (64)"]


def compare_layers(first: list[Floats], second: list[Floats]) -> Comparisons:
    """One comparison per layer."""
    from nearid.questions.compare.result import Comparisons
    from nearid.questions.compare.run import compare

    results = [
        compare(a, b, names=(f"{layer}: seed 0", "seed 1"))
        for layer, a, b in zip(layer_names(), first, second, strict=True)
    ]
    return Comparisons(("seed 0", "seed 1"), ((0, 1),) * len(results), tuple(results))


@guided("start/index", "nearid demo", "nearid demo -o digits.html")
def demo(
    out: Annotated[
        Path, typer.Option("--out", "-o", help="File to write the report to.", rich_help_panel=OUTPUT)
    ] = Path("nearid-demo.html"),
    quiet: Annotated[bool, QUIET] = False,
) -> None:
    """Train two small autoencoders on handwritten digits from different seeds and compare them layer by layer."""
    from nearid.base.progress import reporting
    from nearid.base.streams import say
    from nearid.show.deliver import show
    from nearid.show.page import check_report, write
    from nearid.show.terminal import render

    check_report(out)
    images = digits()
    if not quiet:
        size = f"{len(images)} handwritten digits of 8 x 8 pixels"
        say(f"Training two autoencoders (64-16-64) on {size} ...")
    with reporting(not quiet) as stages:
        first, second = (autoencoder_states(images, seed, stages(f"seed {seed}", EPOCHS)) for seed in (0, 1))
    comparisons = compare_layers(first, second)
    view = replace(comparisons.view, question="Two autoencoders of handwritten digits, layer by layer")
    write(view, out)
    show(lambda width: render(view, width))
    if not quiet:
        say(f"Report written to {out}. Open it in a browser.")
