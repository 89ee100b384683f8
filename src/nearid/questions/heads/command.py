"""`nearid heads`: do two models' heads tell the map between their features?"""

from __future__ import annotations

from typing import Annotated

import typer

from nearid.show.columns import ExcludeOption, FeaturesOption


def heads(
    head1: Annotated[
        str,
        typer.Argument(metavar="HEAD1", help="Vectors of the classes, classes x features: FILE or FILE:ENTRY."),
    ],
    head2: Annotated[str, typer.Argument(metavar="HEAD2", help="Those of the other model, in the same order.")],
    features1: Annotated[
        str, typer.Argument(metavar="FEATURES1", help="What the head reads: FILE, FILE:ENTRY or FOLDER:LAYER.")
    ],
    features2: Annotated[str, typer.Argument(metavar="FEATURES2", help="Those of the other model, for the same rows.")],
    bias1: Annotated[str | None, typer.Option(help="Biases of the first head (x.bias beside x.weight).")] = None,
    bias2: Annotated[str | None, typer.Option(help="Biases of the second head.")] = None,
    no_bias: Annotated[bool, typer.Option("--no-bias", help="Leave biases out.")] = False,
    pairs: Annotated[
        bool, typer.Option("--pairs", help="Build the map from as many pairs of classes as features, as published.")
    ] = False,
    draws: Annotated[int, typer.Option(min=1, help="Choices of pairs to draw, of which the best is taken.")] = 100,
    features: FeaturesOption = None,
    exclude: ExcludeOption = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the halves of the rows and of the pairs.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
) -> None:
    """Do these heads tell the map between the features? Evidence of linear identifiability from weights alone.

    Heads are weights of classifiers, output embeddings of language models, or g(y) of contrastive models. The map that
    follows from them is compared with the one fitted to the features.
    """
    from nearid.base.errors import InputError
    from nearid.questions.heads.run import compare_heads
    from nearid.questions.heads.table import render
    from nearid.show.deliver import deliver

    given = (bias1, bias2)
    if no_bias and any(given):
        raise InputError("Biases were given, and --no-bias as well; leave one of the two out.")
    biases = False if no_bias else [bias or True for bias in given]
    found = compare_heads(
        head1,
        head2,
        features1,
        features2,
        biases=biases,
        pairs=pairs,
        draws=draws,
        features=features,
        exclude=exclude,
        random_state=seed,
    )
    deliver(found, render, as_json, None)
