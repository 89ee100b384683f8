"""What holds of every experiment: the smoke preset runs, seeds decide, and what cannot be is refused by name."""

import json
import math
from dataclasses import fields

import pytest

from nearid.base.errors import InputError
from nearid.lab.framework.experiment import HOMES, experiment
from nearid.lab.framework.run import reproduce
from nearid.lab.framework.settings import Bounds, changed, parameters_for

# Fixtures with files in the place of the data sets.
DATA = {
    "cpc": "photographs",
    "mnist-autoencoders": "digits",
    "faces": "faces",
    "words": "corpora",
    "gpt2-svcca": "corpora",
    "3dident": "scenes",
}
# What makes a run quicker still.
QUICK = {name: {"steps": 2} for name in ("diet", "supervised", "cross-entropy-optimum")} | {
    "bilipschitz-recovery": {"steps": 5},
    "mnist-autoencoders": {"steps": 5},
    "words": {"vocabulary": 130, "frequent": 50},
    "gpt2-svcca": {"vocabulary": 100, "steps": 3},
}
ROWS = {"disentanglement": ("solids-ae-decay-0.1", "solids-vq-vae-decay-0")}
# Rows that are run twice, where the first trains no network.
REPEATED = {"faces": "ae", "dislib": "sprites-cnn"}
# These need features or networks of the user's or of others, and are run in their own tests.
GIVEN = ("imagenet-factors", "imagenet-x", "pretrained-pairs", "trained-pairs", "others-networks")
# Scores that so short a run may not have.
SELDOM = {"r2_w", "r2_unseen", "within", "excess", "technical", "elevation", "bound", "beta"}
NEEDING = [name for name in HOMES if experiment(name).datasets(parameters_for(experiment(name), "smoke"))]


@pytest.mark.own_seeds
@pytest.mark.parametrize("name", [name for name in HOMES if name not in GIVEN])
def test_the_smoke_preset_runs_with_figures_and_seeds_decide(name, request, tmp_path, inline):
    e = experiment(name)
    for module in e.requires:
        pytest.importorskip(module, reason=f"{module} is not installed")
    if name in DATA:
        request.getfixturevalue(DATA[name])
    options = {"parameters": QUICK.get(name), "rows": ROWS.get(name, ())}
    result = reproduce(e, tmp_path / "out", preset="smoke", seeds=1, **options)
    assert not result.failures and [f.cell.row.key for f in result.cells] == [row.key for row in result.rows]
    scored = {key for f in result.cells for key in f.data["scores"]}
    assert {column.key for column in e.columns} - SELDOM <= scored
    drawn = {key for f in result.cells for key in f.data.get("curves", {})}
    assert {axes.key for axes in e.curves} <= drawn
    page = next(tmp_path.rglob("report.html")).read_text()
    figures = e.figures(result)
    assert figures and len({figure.title for figure in figures}) == len(figures)
    assert e.shows in page
    PARTICULAR.get(name, lambda result, figures, page: None)(result, figures, page)
    for f in result.cells:
        for key in (f.data.get("curves", {}).keys() & f.data["scores"].keys()) - {"loss"}:
            assert f.data["curves"][key]["y"][-1] == pytest.approx(f.data["scores"][key]), (f.cell.row.key, key)
    # A cell depends on its parameters and its seed alone.
    first = result.of_row(REPEATED.get(name, result.rows[0].key))[0]
    folders = [tmp_path / "again", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
    again, other = (e.cell(first.cell.parameters, seed, folder) for seed, folder in enumerate(folders))
    again = json.loads(json.dumps(again, allow_nan=False))
    # Views of deconfounding tell how long its parts took.
    for part in first.data if name != "deconfounding" else ("scores",):
        assert again[part] == first.data[part]
    assert other["scores"] != again["scores"]


def _diet(result, figures, page):
    # Instances are the labels: equal rows within a class can be asked for.
    assert len(result.rows) == 52
    assert result.scores("base-unit", "within") and not result.scores("many-classes-unit", "within")


def _supervised(result, figures, page):
    # Classes are the labels: half of five of them determine no map.
    assert len(result.rows) == 60
    assert result.scores("base-unit", "r2_w") and not result.scores("few-classes-unit", "r2_w")


def _sphere(result, figures, page):
    assert len(result.rows) == 16 and len(figures) == 32 and "true against recovered" in page
    assert result.to_dict()["table"][0]["scores"]["r2"]["published"]["value"] == 99.42


def _box(result, figures, page):
    assert len(result.rows) == 9 and len(figures) == 18


def _squares(result, figures, page):
    plain, rescaled = figures
    assert list(plain.curves) == ["4 r", "8 r"] and list(rescaled.curves) == ["4 r"]
    # Points lie near the lines.
    for plot, factor in ((plain, 8), (rescaled, 4)):
        x, y = plot.points["growing"]
        assert y == pytest.approx([factor * r for r in x], rel=0.15)


def _disentanglement(result, figures, page):
    # Information, reconstructions and, where there is ICA, traversals; there is no ranking with one seed.
    assert len(figures) == 5 and "data:image/png" in page


def _deconfounding(result, figures, page):
    assert "AUROC after ICA and before" in page and "Paired t tests. One perturbation" in page


def _words(result, figures, page):
    titles = ["Two runs: words before the linear map", "Two runs: contexts before the linear map"]
    assert [figure.title for figure in figures][::2] == titles
    assert all(len(figures[0].names[group]) == len(x) for group, (x, _) in figures[0].points.items())


def _gpt2(result, figures, page):
    assert [len(figure.points) for figure in figures] == [4] + [2] * 4
    points = figures[0].points[result.rows[0].title]
    assert points == figures[1].points["k = 16"] and points[0] == [-k for k in range(13)]
    assert "0.920" in page


def _ident3d(result, figures, page):
    scatter, correlation = figures[:2]
    assert "true x" in {panel.x for panel in scatter.panels} and correlation.columns[0] == "x"
    assert list(correlation.panels) == ["recovered", "and mapped linearly"]


PARTICULAR = {
    "diet": _diet,
    "supervised": _supervised,
    "contrastive-sphere": _sphere,
    "contrastive-box": _box,
    "square-manifolds": _squares,
    "disentanglement": _disentanglement,
    "deconfounding": _deconfounding,
    "words": _words,
    "gpt2-svcca": _gpt2,
    "3dident": _ident3d,
}


@pytest.mark.parametrize("name", NEEDING)
def test_without_its_data_nothing_begins(name, home, tmp_path):
    with pytest.raises(InputError, match=r"needs .*, which is not here: .* nearid data fetch "):
        reproduce(name, tmp_path / "out", preset="smoke")
    assert not (tmp_path / "out").exists()


def wrong_values(bounds, value):
    """Values that the bounds of a parameter do not allow."""
    # What follows from other parameters is never below 0.
    least = 0 if callable(bounds.least) else bounds.least
    if bounds.choices:
        yield "none of these"
    if bounds.positive:
        yield from (0.0, -1.0, math.inf)
    if bounds.multiple:
        yield bounds.multiple + 1
    if math.isfinite(least):
        yield type(value)(least - 1)
    if math.isfinite(bounds.most):
        yield type(value)(bounds.most + 1)


@pytest.mark.parametrize("name", HOMES)
def test_parameters_out_of_their_bounds_are_refused_by_name(name):
    p = experiment(name).defaults
    for f in fields(p):
        bounds, value = f.metadata["bounds"], getattr(p, f.name)
        # Without a bound a training would be refused late, or never end.
        assert bounds != Bounds() or f.name not in ("steps", "rate", "looks", "schedule", "held_out")
        for wrong in wrong_values(bounds, value[0] if isinstance(value, tuple) else value):
            with pytest.raises(InputError, match=rf"The parameter {f.name} must be .*, not "):
                changed(p, {f.name: (wrong,) if isinstance(value, tuple) else wrong})
