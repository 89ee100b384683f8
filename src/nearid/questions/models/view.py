"""The view of two models: which layers correspond, how closely and up to which group."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nearid.groups.ladder import GROUPS
from nearid.questions.compare.result import Comparison
from nearid.questions.compare.view import headline as ladder_headline, view as ladder_view
from nearid.questions.heads.view import view as heads_view
from nearid.questions.layers.result import LayerComparison, place_of_best
from nearid.questions.layers.view import LEVEL, all_alike, nearest_layers, view as layers_view
from nearid.questions.models.result import ModelComparison
from nearid.show.view import Cell, Column, Row, Table, View, counted, with_intervals

# Share of pairs of layers whose nearest layers are in the same order, from which the view calls the depths ordered.
# Two layers with the same nearest layer count half.
ORDERED = 0.8


def view(c: ModelComparison) -> View:
    """The best pair of layers and its verdict; the heat map; the ladders and the heads as sections of their own."""
    layers, nearest = layers_view(c.layers), nearest_layers(c.layers)
    related = c.pair is not None and c.best is not None and not c.pair.p_value > LEVEL
    ladder = None if c.best is None else ladder_view(c.best)
    sections = [("Most similar layers", c.best), ("Last layers", c.last if c.last is not c.best else None)]
    parts = [
        replace(ladder_view(each), subject=f"{title}: {_names(each)}", alerts=())
        for title, each in sections
        if each is not None
    ]
    if c.heads is not None:
        shown = heads_view(c.heads)
        parts.append(replace(shown, subject=f"Heads: {shown.subject}", alerts=()))
    return View(
        question="Which layers of two models correspond?",
        subject=f"{c.names[0]} -> {c.names[1]}: {_sizes(c)}",
        headline=_headline(c) if related else layers.headline,
        reason=" ".join(filter(None, (_decided(c), order_of_depths(c.layers)))),
        colour=ladder.colour if related and ladder is not None else layers.colour,
        alerts=c.alerts,
        tables=[_ladders(c), nearest, *(replace(table, folded=True) for table in layers.tables if table != nearest)],
        facts=_facts(c),
        figures=layers.figures,
        method=layers.method,
        provenance=c.provenance,
        parts=parts,
    )


def _sizes(c: ModelComparison) -> str:
    counts = " x ".join(str(len(side)) for side in c.layers.layers)
    return f"{counts} layers, {counted(c.layers.n, 'row')} of {c.data}"


def _names(c: Comparison) -> str:
    return f"{c.names[0]} -> {c.names[1]}"


def _place(layers: Sequence[str], layer: str) -> str:
    return f"{layers.index(layer) + 1} of {len(layers)}"


def _headline(c: ModelComparison) -> str:
    """The two layers by their depths, and the verdict of the ladder between them."""
    assert c.pair is not None and c.best is not None
    if alike := all_alike(c.layers):
        return f"{alike}. For {c.pair.source} and {c.pair.target}: {ladder_headline(c.best)}"
    (x, y), (left, right) = c.names, c.layers.layers
    source = f"Layer {c.pair.source} of {x} ({_place(left, c.pair.source)})"
    target = f"layer {c.pair.target} of {y} ({_place(right, c.pair.target)})"
    return f"{source} corresponds to {target}. {ladder_headline(c.best)}"


def _decided(c: ModelComparison) -> str:
    """The value of the best pair."""
    if c.pair is None:
        return ""
    return f"Best of {counted(c.pair.pairs, 'pair')} of layers by {c.measure}: {c.pair.text}."


def _nearest_places(c: LayerComparison) -> list[tuple[int, int]]:
    """Numbers of the layers of the source, from 1, and of those nearest to them, by the first measure."""
    measure, values = next(iter(c.values.items()))
    found = [(i, place_of_best(measure, row)) for i, row in enumerate(values, start=1)]
    return [(i, at[0] + 1) for i, at in found if at is not None]


def order_of_depths(c: LayerComparison) -> str:
    """Whether deeper layers are nearest to deeper ones; the table of nearest layers names them."""
    places = _nearest_places(c)
    if len(places) < 3 or all_alike(c):
        return ""
    step = np.diff(np.array(list(itertools.combinations([j for _, j in places], 2))), axis=1)
    share = float(np.mean((step > 0) + 0.5 * (step == 0)))
    if share >= ORDERED:
        return "Deeper layers mostly correspond to deeper layers (see the table of nearest layers)."
    return "The layers do not correspond in the order of their depth (see the table of nearest layers)."


def _ladders(c: ModelComparison) -> Table:
    """The best pair of layers and the last ones, each with the groups of the ladder."""
    pairs = {"most similar": c.best, "last": c.last}
    known = {which: each for which, each in pairs.items() if each is not None}
    groups = list(next(iter(known.values())).groups) if known else []
    estimates = [each.groups[name].r2 for each in known.values() for name in groups]
    columns = [Column("layers"), Column(c.measure), *(Column(f"R2\n{name}") for name in groups)]
    columns += [Column("same up to", left=True)]
    rows = []
    for which, each in known.items():
        at = _where(c, which)
        source, target = (side[i] for side, i in zip(c.layers.layers, at, strict=True))
        cells: list[Cell] = [f"{which}: {source} -> {target}", float(c.layers[c.measure][at])]
        cells += [each.groups[name].r2 if each.groups[name].estimable else None for name in groups]
        rows.append(Row([*cells, _reached(each)]))
        if each.reverse is not None:
            back = {name: each.reverse.groups[name] for name in groups}
            cells = [f"{which}, back: {target} -> {source}", None]
            cells += [group.r2 if group.estimable else None for group in back.values()]
            rows.append(Row([*cells, _reached(each.reverse)]))
    note = "R2: share of the target layer's variance that the group explains on held-out rows."
    if c.pair is not None and c.pair.pairs > 1:
        note += f" The intervals of the most similar layers do not account for the choice among {c.pair.pairs} pairs."
    return Table(with_intervals("How closely, and up to which group", estimates), columns, rows, note)


def _reached(c: Comparison) -> str:
    """The group of a verdict, or the two that it lies between, and how nearly."""
    if c.verdict.group not in GROUPS:
        return "no group"
    groups = " or ".join(GROUPS[name].title for name in c.verdict.between or (c.verdict.group,))
    return f"{groups}, {c.verdict.strength}"


def _where(c: ModelComparison, which: str) -> tuple[int, int]:
    left, right = c.layers.layers
    if which == "last" or c.pair is None:
        return len(left) - 1, len(right) - 1
    return left.index(c.pair.source), right.index(c.pair.target)


def _facts(c: ModelComparison) -> dict[str, str]:
    if c.heads is None:
        return {}
    shown = heads_view(c.heads)
    return {"Heads": f"{shown.headline}. {shown.reason}"}
