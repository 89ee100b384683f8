"""The view of a comparison of layers: tables, heat maps and sentences."""

from __future__ import annotations

import numpy as np

from nearid.questions.compare.verdict import WORTH_SAYING
from nearid.questions.layers.chance import MATCHED, has_chance
from nearid.questions.layers.result import LayerComparison, is_error, measures
from nearid.show.figures import TARGET, HeatMap
from nearid.show.view import BAD, Cell, Column, Row, Table, View, counted, fixed, with_intervals

AGREEMENT = "1 means full agreement. Unrelated rows give about 0 or less."
ERROR = "0 means full agreement. Errors are divided by the diameter of the target layer."
# Up to so many columns a heat map has its values in the cells, and a matrix is also a table in the terminal.
WRITTEN, TABLED = 16, 12
# Above this p-value, against the best of all pairs by chance, no pair is more alike than chance.
LEVEL = 0.05
# If the values of all pairs lie within this range, and none below the interval of the best, they do not name a pair.
ALIKE = 0.02
ROUNDING = 1e-6


def view(c: LayerComparison) -> View:
    """The nearest layers, a matrix and a heat map for each measure."""
    titles = {name: measures().get(name, name) for name in c.values}
    sizes = f"{len(c.layers[0])} x {len(c.layers[1])} layers, n = {c.n:,}"
    return View(
        question="Which layers agree?",
        subject=f"{c.names[0]} -> {c.names[1]}: {sizes}",
        headline=_headline(c, titles),
        reason=_reason(c),
        colour=_colour(c),
        alerts=c.alerts,
        tables=[
            *([_best(c, titles)] if c.best else []),
            nearest_layers(c),
            *(_matrix(c, name, title) for name, title in titles.items()),
        ],
        figures=[_heat_map(c, name, title) for name, title in titles.items()],
        method=_method(c),
        provenance=c.provenance,
    )


def _headline(c: LayerComparison, titles: dict[str, str]) -> str:
    """The two layers that are most alike by the first measure."""
    measure, title = next(iter(titles.items()))
    best = c.best.get(measure)
    if best is None:
        return "No two layers could be compared"
    if best.p_value <= LEVEL and (alike := all_alike(c)):
        return alike
    pair = f"{best.source} of {c.names[0]} and {best.target} of {c.names[1]}"
    figure = f"{title}, {fixed(best.value.value)}"
    if best.p_value > LEVEL:
        return f"No pair of layers is more similar than chance. The best is {pair}: {figure}, p = {best.p_value:.2g}"
    if best.value.chance > WORTH_SAYING * best.value.value:
        figure += f", where chance alone reaches {fixed(best.value.chance)}"
    return f"The most similar layers are {pair}: {figure}"


def all_alike(c: LayerComparison) -> str:
    """That all pairs of layers are equally similar by the first measure, in words; "" if they are not."""
    measure, values = next(iter(c.values.items()))
    best, known = c.best.get(measure), values[np.isfinite(values)]
    if best is None or best.pairs < 4:
        return ""
    low, high = float(known.min()), float(known.max())
    # Without an interval, nothing shows that the best is better than the others.
    if high - low > ALIKE or best.value.low > low + ROUNDING:
        return ""
    span = f"{measure} {fixed(low)} to {fixed(high)}"
    return f"All {best.pairs} pairs of layers are equally similar ({span}): these rows do not show which correspond"


def _colour(c: LayerComparison) -> str:
    best = c.best.get(next(iter(c.values)))
    return BAD if best is not None and best.p_value > LEVEL else TARGET


def _reason(c: LayerComparison) -> str:
    """The value of the best pair by the first measure."""
    best = c.best.get(next(iter(c.values)))
    return "" if best is None else f"Best of {counted(best.pairs, 'pair')} of layers: {best.text}."


def nearest_layers(c: LayerComparison) -> Table:
    """For each layer of the source the nearest of the target, by each measure."""
    columns = [Column("layer")]
    for measure in c.values:
        columns += [Column(f"{measure}\nnearest", left=True), Column(f"{measure}\nvalue")]
        columns += [Column(f"{measure}\np")] if measure in c.p_values else []
    rows = []
    for i, layer in enumerate(c.layers[0]):
        cells: list[Cell] = [layer]
        for measure in c.values:
            nearest, value = c.nearest(measure).get(layer, (None, None))
            cells += [nearest, value]
            if measure in c.p_values:
                cells.append(None if nearest is None else float(c.p_values[measure][i, c.layers[1].index(nearest)]))
        rows.append(Row(cells))
    note = "p compares a pair with the best of all pairs after the target's rows were shuffled." if c.p_values else ""
    return Table(f"The layer of {c.names[1]} that is nearest to each layer of {c.names[0]}", columns, rows, note)


def _best(c: LayerComparison, titles: dict[str, str]) -> Table:
    """The best pair by each measure."""
    columns = [Column("measure"), Column("source", left=True), Column("target", left=True), Column("value")]
    columns += [Column("best by\nchance"), Column("p")]
    rows = [
        Row([titles[name], best.source, best.target, best.value, best.value.chance, best.p_value])
        for name, best in c.best.items()
    ]
    count = max(best.pairs for best in c.best.values())
    title = f"Best of {counted(count, 'pair')} of layers"
    headed = with_intervals(title, (best.value for best in c.best.values()))
    sentences = ["Each interval accounts for the choice among all pairs."] if headed != title else []
    if c.p_values:
        sentences.append("Best by chance: the best of all pairs after the target's rows were shuffled.")
    return Table(headed, columns, rows, " ".join([*sentences, _without_chance(c), _beyond_components(c)]).strip())


def _without_chance(c: LayerComparison) -> str:
    """Measures without a chance level, and why."""
    reasons: dict[str, list[str]] = {}
    for name in c.values if c.provenance["options"]["permutations"] != 0 else ():
        if name in c.p_values or name not in c.best:
            continue
        reason = "it has no value for some shuffles of these rows"
        if is_error(name):
            reason = "R2 of the same map has one"
        elif name not in measures():
            reason = "nearid does not know how long your own function takes"
        elif "slow_rows" in [alert.code for alert in c.alerts]:
            reason = "rows depend on their neighbours for too long"
        elif c.provenance["blocks"] == 1:
            reason = "a single block of rows cannot be shuffled"
        elif not has_chance(name, max(map(max, c.widths))):
            reason = f"some layers have more than {MATCHED} columns, which take too long to match"
        reasons.setdefault(reason, []).append(name)
    return " ".join(f"No chance level for {', '.join(names)}: {reason}." for reason, names in reasons.items())


def _beyond_components(c: LayerComparison) -> str:
    """Measures whose best pair is wider than what chance was measured on, and no better than chance there."""
    widths = [dict(zip(names, sizes, strict=True)) for names, sizes in zip(c.layers, c.widths, strict=True)]
    doubted: dict[int, list[str]] = {}
    for name, own in c.provenance["chance"].items():
        best = c.best[name]
        wide = max(widths[0][best.source], widths[1][best.target]) > own["components"]
        if wide and best.p_value > LEVEL:
            doubted.setdefault(own["components"], []).append(name)
    return " ".join(
        f"The p-value of {', '.join(names)} uses the {k} leading principal components of wide layers. It cannot detect "
        "a relation in the other components."
        for k, names in doubted.items()
    )


def _method(c: LayerComparison) -> str:
    """How chance was measured."""
    sentences = []
    for name, own in c.provenance["chance"].items():
        wide = max(map(max, c.widths)) > own["components"]
        sentences.append(
            f"Chance level of {name}: {own['repetitions']} different shuffles of the target's rows, the same for all "
            f"layers, on {own['rows']:,} rows"
            + (f"; wide layers are reduced to {own['components']} leading principal components." if wide else ".")
        )
    return " ".join(sentences)


def _matrix(c: LayerComparison, measure: str, title: str) -> Table:
    columns = [Column("layer"), *(Column(str(j)) for j in range(len(c.layers[1])))]
    rows = []
    for layer, values in zip(c.layers[0], c.values[measure], strict=True):
        cells: list[Cell] = [layer, *map(float, values)]
        rows.append(Row(cells))
    note = f"Columns: {', '.join(f'{j} {layer}' for j, layer in enumerate(c.layers[1]))}"
    title = f"{title}: {c.names[0]} (rows) -> {c.names[1]} (columns)"
    return Table(title, columns, rows, note, folded=len(c.layers[1]) > TABLED)


def _heat_map(c: LayerComparison, measure: str, title: str) -> HeatMap:
    """Source layers by target layers, the first at the top left; bright is near."""
    values, error = c.values[measure], is_error(measure)
    known = values[np.isfinite(values)]
    return HeatMap(
        title,
        ERROR if error else AGREEMENT,
        {"": values},
        c.layers[0],
        c.layers[1],
        c.names[1],
        c.names[0],
        low=float(min(0.0, known.min(initial=0.0))),
        high=float(known.max(initial=0.0)) if error and len(known) else 1.0,
        digits=2 if len(c.layers[1]) <= WRITTEN else None,
        reverse=error,
    )
