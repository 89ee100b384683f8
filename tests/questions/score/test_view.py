"""What a person sees of a score: words, tables and figures."""

import re
from dataclasses import replace

import numpy as np
import pytest

from nearid import score
from nearid.groups.ladder import GROUPS
from nearid.questions.score.view import headline
from nearid.show.terminal import text as as_text
from nearid.show.view import number


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    u = rng.laplace(size=(600, 2))
    return score(u @ [[1, 0.9], [0, 1]], {"[bold]x": u[:, 0], "y": u[:, 1]}, measures="mcc,r2,infomec", resolve="ica")


@pytest.mark.parametrize("width", [80, 120])
def test_tables_fit_and_say_it_all(found, width):
    text = as_text(found.view, width)
    assert max(map(len, text.splitlines())) <= width and "…" not in text
    for word in ("MCC", "R2, linear", "InfoMEC (InfoM) *", "InfoE", "after ICA", "[bold]x", "chance", "not held out"):
        assert word in text, word
    assert text == str(found) if width == 120 else True
    assert f"{found.measures['mcc'].value:.3f}" in text
    assert f"{found.resolved.measures['mcc'].value:.3f}" in text


def test_headlines_follow_the_verdict(found):
    assert headline(found) == "The true factors are recovered nearly exactly, up to a linear map"
    assert headline(found.resolved).endswith("up to a signed permutation with a scale for each column")
    between = replace(found, verdict=replace(found.verdict, between=("rigid", "linear")))
    assert headline(between) == "The true factors are recovered nearly exactly, between a rigid motion and a linear map"
    noise = score(np.random.default_rng(1).normal(size=(60, 2)), np.arange(60.0), measures="mcc")
    assert headline(noise) == "The true factor is not recovered up to any group of the ladder"


def test_the_headline_counts_the_factors_that_are_judged():
    """It was "4 of 5 true factors are recovered closely" where the fifth was categorical and recovered best."""
    rng = np.random.default_rng(0)
    u = {name: rng.laplace(size=300) for name in "abcd"}
    shape = rng.choice(["disc", "square"], 300)
    z = np.column_stack([*u.values(), shape == "disc"]) + 0.2 * rng.normal(size=(300, 5)) * [1, 1, 1, 1, 0.01]
    found = score(z, {**u, "shape": shape}, measures="mcc,r2", permutations=1)
    r2 = found.measures["r2"].factors["shape"].value
    assert headline(found) == (
        f"All 4 continuous factors are recovered closely, up to a {GROUPS[found.verdict.group].title}. "
        f"The categorical factor is scored separately: R2 {r2:.3f}"
    )
    mixed = {**u, "shape": shape, "size": rng.integers(0, 9, 300), "line": rng.choice(["x", "y"], 300)}
    noise = score(rng.normal(size=(300, 2)), mixed, measures="mcc,mig", permutations=1)
    assert headline(noise).startswith("The 5 numeric factors are not recovered up to any group of the ladder. ")
    assert re.search(r"The 2 categorical factors are scored separately: MCC -?0\.\d+( to -?0\.\d+)?$", headline(noise))
    classes = score(z, {"shape": shape}, measures="modularity", permutations=1)
    assert headline(classes) == (
        "There is no verdict on a group, because all factors are categorical. "
        "The categorical factor is scored separately, by the measures below"
    )


def test_the_headline_names_factors_that_are_lost():
    """Four factors of five were recovered exactly, and the headline said "closely" of all."""
    rng = np.random.default_rng(0)
    u = {name: rng.laplace(size=400) for name in "abcd"}
    z = np.column_stack([u["a"], u["b"], u["c"]]) + 0.01 * rng.normal(size=(400, 3))
    found = score(z, u, measures="r2", permutations=1)
    lost = found.measures["r2"].factors["d"].value
    assert headline(found).startswith("Together, the true factors are recovered ") and lost < 0.05
    assert headline(found).endswith(f". Not recovered: 'd' (R2 {number(lost)})")
    more = {**u, **{f"e{k}": rng.laplace(size=400) for k in range(4)}}
    assert re.search(
        r"Not recovered: 'd', 'e0', 'e1' and 2 more \(R2 ", headline(score(z, more, measures="r2", permutations=1))
    )
    assert "Not recovered" not in headline(score(z, {name: u[name] for name in "abc"}, measures="r2", permutations=1))
    # Without R2 nothing is said, and where nothing is recovered the verdict says it.
    assert "Not recovered" not in headline(score(z, u, measures="mcc", permutations=1))
    assert "Not recovered" not in headline(score(rng.normal(size=(400, 3)), u, measures="r2", permutations=1))


def test_a_verdict_without_outlying_rows_says_so():
    rng = np.random.default_rng(0)
    u = rng.uniform(-1, 1, size=(600, 2))
    x = u @ np.array([[0.6, 0.8], [-0.8, 0.6]])
    x[:2] *= 500
    found = score(x, u, measures="mcc", permutations=5)
    assert (
        headline(found)
        == "Without 2 outlying rows: the true factors are recovered nearly exactly, up to a rigid motion"
    )
    # The ladder is of the same rows as the verdict.
    ladder = next(table for table in found.view.tables if table.title.startswith("Epsilon"))
    assert next(row for row in ladder.rows if row.strong).cells[4].value > 0.99


def test_parts_after_ica_are_those_of_their_own_measure():
    rng = np.random.default_rng(0)
    u = rng.laplace(size=(200, 2))
    found = score(u @ [[1, 0.9], [0, 1]], u, measures="dci,dci_l1", resolve="ica", permutations=1)
    measured, factors, *_ = found.view.tables
    parts = [row.cells for row in measured.rows if row.cells[0] == "  completeness"]
    for cells, name in zip(parts, ("dci", "dci_l1"), strict=True):
        before, after = (s.measures[name].parts["completeness"] for s in (found, found.resolved))
        assert cells[1:] == [before, before.chance, after, after.chance]
    assert parts[0][3] != parts[1][3]
    assert [c.title for c in factors.columns[3:]] == ["informativeness, boosting", "informativeness, L1"]


def test_a_group_that_cannot_be_estimated_has_no_figures(found):
    groups = found.structure.groups
    lost = replace(found.structure, groups={**groups, "linear": replace(groups["linear"], estimable=False)})
    seen = replace(found, structure=lost, resolved=None).view
    (*_, row) = seen.tables[-1].rows
    known = groups["linear"]
    figures = [known.epsilon.chance, None, "not estimable with these rows", known.r2.chance, known.p_value]
    assert row.cells == ["linear map", None, *figures]
    assert "linear map" not in seen.figures[-1].rows and "rigid motion" in seen.figures[-1].rows


def test_factors_and_their_measures_are_named(found):
    measured, factors, *_ = found.view.tables
    assert [c.title for c in factors.columns] == ["factor", "kind", "latent", "MCC", "R2, linear", "InfoE *"]
    assert factors.rows[0].cells[:3] == ["[bold]x", "continuous (inferred)", found.factors[0].matched]
    mcc = found.measures["mcc"].factors["[bold]x"]
    assert factors.rows[0].cells[3] == mcc.value
    assert next(t.rows[0].cells[3] for t in found.view.tables if t.folded) == mcc
    assert [row.cells[0] for row in measured.rows] == ["MCC", "R2, linear", "InfoMEC (InfoM) *", "  InfoE", "  InfoC"]


def test_the_page_draws_measures_factors_maps_scatters_and_the_ladder(found):
    view = found.view
    assert view.question == "Is this the true representation?" and "jackknife" in view.method
    assert view.facts["After ICA"].startswith("The true factors are recovered nearly exactly, up to a signed perm")
    assert [figure.title for figure in view.figures] == [
        "The measures",
        "Each factor",
        "Each factor, after ICA",
        "|Correlation|, held out",
        "|Correlation|, held out, after ICA",
        "Normalised mutual information",
        "Normalised mutual information, after ICA",
        "Factors and their latents",
        "Factors and their latents, after ICA",
        "Up to which group",
        "Up to which group, after ICA",
    ]
    before, after = view.figures[3:5]
    # The same colours before and after; the matched latents come first, in the order of their factors.
    assert before.high == after.high == max(np.abs(s.measures["mcc"].matrix).max() for s in (found, found.resolved))
    assert list(before.columns) == [f"z{f.matched}" for f in found.factors]
    for figure in view.figures:
        assert figure.draw()["data"]


def test_maps_of_one_thing_are_drawn_once():
    rng = np.random.default_rng(0)
    u = {"a": rng.normal(size=120), "kind": rng.choice(["x<y>", "z"], 120)}
    z = np.column_stack([u["a"], u["kind"] == "z"])
    titles = [f.title for f in score(z, u, measures="mcc,mcc_spearman,mig", permutations=1).view.figures]
    assert "Mutual information / entropy, binned" in titles and "|Rank correlation|, held out" not in titles
    alone = score(z, u, measures="mcc_spearman", permutations=1).view.figures
    assert "|Rank correlation|, held out" in [f.title for f in alone]
    (scatter,) = [f for f in alone if f.title == "Factors and their latents"]
    assert "x&lt;y&gt;" in scatter.draw()["data"][1]["x"]


def test_values_far_below_zero_leave_room_for_the_others():
    rng = np.random.default_rng(0)
    u = rng.normal(size=(40, 2))
    wide = score(np.hstack([u, rng.normal(size=(40, 28))]), u, measures="mcc,r2", permutations=2, ridge=0)
    assert wide.measures["r2"].overall.chance < -1
    (measured, *_) = wide.view.figures
    mcc, r2 = measured.groups["latents"]
    assert mcc == wide.measures["mcc"].overall
    assert r2 is None or (np.isnan(r2.chance) and r2.low >= -1)


def test_a_table_of_every_figure(found):
    frame = found.to_frame()
    assert list(frame.columns) == ["latents", "measure", "part", "factor", "value", "low", "high", "chance"]
    row = frame[(frame.measure == "mcc") & (frame.factor == "y") & (frame.latents == "latents")]
    assert row.value.item() == found.measures["mcc"].factors["y"].value
    assert set(frame[frame.measure == "infomec"].part) == {"", "infom", "infoe", "infoc"}


def test_a_new_measure_is_seen_everywhere_after_one_registration(monkeypatch):
    from typer.testing import CliRunner

    from nearid.cli import commands
    from nearid.measures import registry
    from nearid.questions.score.run import _named

    monkeypatch.setattr(registry, "MEASURES", dict(registry.MEASURES))
    rng = np.random.default_rng(0)
    u = rng.normal(size=(100, 2))

    @registry.measure(
        "Sign agreement",
        low=-1.0,
        parts={"worst": registry.Part(-1.0, title="worst factor")},
        each="Agreement",
        each_low=-1.0,
        heat_map="Agreement of signs",
        held_out=False,
    )
    def sign_agreement(x, factors):
        """Mean agreement of the signs of each factor with those of its best latent."""
        matrix = np.sign(x - np.median(x, axis=0)).T @ np.sign(factors.rows.read(0, len(x))) / len(x)
        each = np.abs(matrix).max(axis=0)
        parts = {"worst": float(each.min())}
        return registry.Measured(float(each.mean()), matrix, factors.names, each, parts)

    scored = score(u + 0.1 * rng.normal(size=u.shape), u, permutations=2, measures="mcc,sign_agreement")
    agreement = scored.measures["sign_agreement"]
    assert 0.5 < agreement.overall.low <= agreement.value <= agreement.overall.high <= 1
    assert abs(agreement.overall.chance) < 0.3 and set(agreement.factors) == {"0", "1"}
    assert scored.to_dict()["measures"]["sign_agreement"]["parts"]["worst"] == agreement.parts["worst"].value
    shown = str(scored)
    for words in ("Sign agreement *", "worst factor", "Agreement *"):
        assert words in shown
    page = scored._repr_html_()
    assert "Sign agreement *" in page and "Agreement of signs" in [f.title for f in scored.view.figures]
    # By default as well, and in the help.
    assert "sign_agreement" in _named(None)
    commands._command.cache_clear()
    told = CliRunner().invoke(commands.app, ["score", "--help"], env={"COLUMNS": "200"}).output
    assert "sign_agreement" in told and "mcc_piecewise" in told
    commands._command.cache_clear()
