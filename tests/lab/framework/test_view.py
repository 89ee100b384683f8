"""What a person sees of an experiment: published and measured side by side, every claim marked, nothing left unsaid."""

import re
from dataclasses import replace

import pytest

from nearid.base.estimate import Estimate
from nearid.lab.framework.claims import Claim, all_of, at_least
from nearid.lab.framework.experiment import Column, Preset
from nearid.lab.framework.run import plan
from nearid.lab.framework.view import how_run, told, view_of_all, view_of_plan
from nearid.show.page import page
from nearid.show.terminal import text
from toy_experiments import NASTY, TOY


def words(shown, width=120):
    return " ".join(text(shown, width).split())


def changed(result, **changes):
    return replace(result, experiment=replace(result.experiment, **changes))


def test_published_columns_only_where_something_is_published(result):
    scores = result.view.tables[0]
    assert [c.title for c in scores.columns] == [
        "setting",
        "score\npublished",
        "score\nmeasured",
        "undefined\nmeasured",
    ]
    low, high = (row.cells for row in scores.rows)
    assert (high[0], low[1], high[1]) == ("high", "0.50", "0.87*")
    assert high[2] == result.estimate("high", "score") and high[3].n == 0


@pytest.mark.parametrize("width", [80, 140])
def test_the_table_as_text(result, width):
    shown = text(result.view, width)
    assert max(map(len, shown.splitlines())) <= width
    for part in ("2 claims reproduced, 1 claim not testable here, 1 claim not reproduced", "read off a figure"):
        assert part in " ".join(shown.split())
    for mark in ("✓ reproduced", "✗ not", "? not"):
        assert mark in shown
    assert "preset cpu, 3 seeds" in shown and "*: not verified" in shown


@pytest.mark.parametrize("width", [80, 120])
def test_columns_that_do_not_fit_follow_below_and_no_interval_is_broken(result, width):
    wide = changed(result, columns=[Column("score", f"score{k}") for k in range(9)], claims=())
    shown = text(wide.view, width)
    assert max(map(len, shown.splitlines())) <= width and shown.count("setting") > 1
    assert wide.view.tables[1].title.startswith("Published and measured, part 2 of ")
    estimate = wide.estimate("high", "score")
    assert shown.count(f"[{estimate.low:.3f}, {estimate.high:.3f}]") == 9 and shown.count("published") >= 9


def test_notes_of_rows_and_values_are_facts(result):
    rows = [replace(row, note="only a toy." if row.key == "high" else "") for row in result.every_row]
    noted = changed(result, rows=lambda p: rows)
    assert noted.view.facts["high"] == "only a toy." and noted.view.facts["published"] == "read off a figure"
    assert "high: only a toy." in words(noted.view) and "only a toy." in page(noted.view)


def test_what_was_changed_is_named_and_said_of_the_claims(result):
    other = replace(result, parameters=replace(result.parameters, noise=0.5, high=True, sizes=(3,)), only=("high",))
    how = "preset cpu, 3 seeds; set: noise = 0.5 (preset: 0.01), sizes = 3 (preset: 1,2); row high only"
    assert how_run(other) == how and other.view.facts["run"] == how
    assert [a.message for a in other.alerts] == ["Claims are judged with changed parameters: noise, sizes."]
    assert result.alerts == []


def test_claims_of_the_shortest_preset_share_one_sentence(result):
    shown = words(replace(result, preset="smoke").view)
    assert shown.count("Claims are not judged on runs as short as those of the preset smoke.") == 1
    assert shown.count("? not") == 4 and "✓" not in shown


def test_of_many_comparisons_one_is_printed_and_the_page_has_all(result):
    many = Claim("All are high.", all_of(*(at_least("high", "score", t) for t in (0.1, 0.5, 0.7, 2))))
    found = changed(result, claims=(many,))
    shown = text(found.view, 400)
    assert "3 of 4 comparisons hold, 1 does not. score of 'high'" in shown and "at least 0.7" not in shown
    assert "at least 0.7" in found.to_dict()["claims"][0]["why"] and "at least 0.7" in page(found.view)


def test_intervals_are_shown_within_the_range_of_a_score(result):
    cut = changed(result, columns=[Column("score", "score", least=0.8999, most=0.9001)], claims=())
    whole, shown = cut.estimate("high", "score"), cut.view.tables[0].rows[1].cells[2]
    assert shown == Estimate(whole.value, max(whole.low, 0.8999), min(whole.high, 0.9001), of=whole.of, n=3)


def test_a_score_that_is_the_same_with_each_seed_is_shown_without_an_interval(result):
    cells = [replace(f, data={**f.data, "scores": {"score": 0.5}}) for f in result.cells]
    alike = replace(changed(result, columns=[Column("score", "score")], claims=()), cells=cells)
    assert not alike.view.tables[0].rows[1].cells[2].has_interval


def test_a_claim_says_who_added_it_and_whether_results_had_been_seen():
    claim = Claim("It is high.", at_least("high", "score", 0.1))
    assert told(claim) == "It is high."
    assert told(replace(claim, late=True)) == "It is high. (Added after results were seen.)"
    assert told(replace(claim, added=True, late=True)).endswith("(Added by nearid. Added after results were seen.)")


def test_failures_are_alerts(failing):
    assert any(a.message.startswith("high, seed 1 failed: ValueError: seed 1") for a in failing.alerts)
    assert "of fewer seeds, as cells failed" in failing.view.facts and "measured: one seed" not in words(failing.view)
    # What a cell raises may be anything.
    assert NASTY not in page(failing.view)


def test_published_beside_measured_a_curve_for_each_cell_and_the_figures_of_the_experiment(result):
    both, lines, matrix, heat = result.view.figures
    assert list(both.groups) == ["measured", "published"] and [e.value for e in both.groups["published"]] == [0.5, 0.87]
    assert lines.title == "The walk" and [len(curves) for curves in lines.curves.values()] == [3, 3]
    assert [curve.hover for curve in lines.curves["high"]] == ["seed 0", "seed 1", "seed 2"]
    assert matrix.title == "true against recovered" and set(heat.panels) == {"before", "after"}


def test_every_cell_is_on_the_page(result):
    cells = next(table for table in result.view.tables if table.title == "Cells")
    assert cells.folded and len(cells.rows) == 6
    row = cells.rows[1].cells
    assert row[:2] == ["high", 0] and row[2] == result.scores("high", "score")[0] and row[3] is None


def test_a_run_before_it_begins_and_the_list(tmp_path):
    shown = text(view_of_plan(plan(TOY, tmp_path, preset="smoke", rows=["high"])), 140)
    assert "points of the curve" in shown and "High is high." in shown and "Nobody & Co" in shown
    assert "preset smoke" in shown and "low" not in shown.split("Rows")[1].split("Claims")[0]
    assert "smoke no time 2" in " ".join(shown.split())


def test_the_list_has_a_line_for_each_experiment_and_what_it_lacks():
    other = replace(TOY, name="other", presets={"cpu": Preset("about 5 minutes on 2 idle cores (more elsewhere)", 3)})
    listed = text(view_of_all([TOY, other], {"toy": [], "other": ["torch", "mnist"]}), 80)
    lines = [" ".join(line.split()) for line in listed.splitlines()]
    assert "2 experiments, 1 can run here" in listed and "toy Table 0 a moment yes" in lines
    assert "other Table 0 5 min needs torch, mnist" in lines


def test_a_headline_begins_with_cells_that_failed(failing):
    assert re.match(r"\d of \d+ cells failed, ", failing.view.headline)
