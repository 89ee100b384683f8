"""What a person sees of two models: the depths, the verdict, the order, then the heat map."""

from dataclasses import replace

import numpy as np
import pytest

import nearid
from nearid.questions.models.view import order_of_depths
from nearid.show.figures import HeatMap


@pytest.fixture(scope="module")
def comparison(network, inputs):
    names = ["small", "large"]
    return nearid.compare_models(network(0), network(1), inputs, names=names, permutations=19, cache=False)


def test_the_headline_names_both_depths_and_the_group(comparison):
    shown = comparison.view
    left, right = comparison.layers.layers
    i, j = np.unravel_index(np.argmax(comparison.layers["cka"]), comparison.layers["cka"].shape)
    source, target = f"Layer {left[i]} of small ({i + 1} of 4)", f"layer {right[j]} of large ({j + 1} of 4)"
    assert shown.headline.startswith(f"{source} corresponds to {target}. ")
    assert comparison.best.view.headline in shown.headline
    assert f"Best of 16 pairs of layers by cka: {comparison.pair.value.value:.3f}" in shown.reason


def test_the_page_opens_with_the_answer_then_the_heat_map_then_the_ladders(comparison, tmp_path):
    shown = comparison.view
    assert isinstance(shown.figures[0], HeatMap) and shown.figures[0].panels[""] is comparison.layers["cka"]
    assert [part.subject.partition(":")[0] for part in shown.parts] == ["Most similar layers", "Last layers", "Heads"]
    assert not any(part.alerts for part in shown.parts)
    comparison.save_report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8").split("<script>")[0]
    places = [page.index(text) for text in (shown.headline[:40], "How closely, and up to", "linear CKA, debiased")]
    assert places == sorted(places)


def test_the_ladders_of_both_pairs_stand_in_one_table(comparison):
    most, last = comparison.view.tables[0].rows
    assert most.cells[0].startswith("most similar: ") and last.cells[0] == "last: 3 -> 3"
    assert last.cells[1] == comparison.layers["cka"][-1, -1]
    assert list(last.cells[2:5]) == [group.r2 for group in comparison.last.groups.values()]


def test_one_pair_is_not_shown_twice(network, inputs):
    comparison = nearid.compare_models(network(0), network(1), inputs, layers="3", permutations=2)
    assert comparison.best is comparison.last and len(comparison.view.parts) == 1


def test_unrelated_models_are_not_said_to_correspond(network, inputs):
    ids = np.random.default_rng(0).permutation(len(inputs))
    comparison = nearid.compare_models(
        network(0), network(1), inputs, options_b={"ids": ids}, permutations=19, cache=False
    )
    assert comparison.view.headline.startswith("No pair of layers is more similar than chance")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.eye(3), "Deeper layers mostly correspond to deeper layers (see the table of nearest layers)."),
        (
            np.eye(4)[::-1],
            "The layers do not correspond in the order of their depth (see the table of nearest layers).",
        ),
        (np.eye(2), ""),
        (np.full((3, 3), np.nan), ""),
    ],
)
def test_the_order_of_depths(comparison, values, expected):
    assert order_of_depths(replace(comparison.layers, values={"cka": values})) == expected


def test_both_directions_are_shown(network, inputs):
    both = nearid.compare_models(network(0), network(1), inputs, permutations=9, cache=False, symmetric=True)
    table = both.view.tables[0]
    shown = {str(row.cells[0]): row.cells for row in table.rows}
    at = [column.title for column in table.columns].index("R2\nlinear")
    for which, ladder in (("last", both.last), ("most similar", both.best)):
        if ladder is not None and any(name.startswith(f"{which}, back") for name in shown):
            back = next(cells for name, cells in shown.items() if name.startswith(f"{which}, back"))
            assert back[at] == ladder.reverse.groups["linear"].r2
    assert sum(", back: " in name for name in shown) == len(shown) / 2
