"""The experiment's table: published and measured side by side, every claim marked."""

from dataclasses import replace

import pytest

from nearid.lab.framework.claims import Claim, all_of, at_least
from nearid.lab.framework.estimate import Estimate
from nearid.lab.framework.experiment import Column
from nearid.lab.framework.page import page
from nearid.lab.framework.table import as_text, claims_note, columns_and_rows, how_run, measured_text


def test_published_columns_only_where_something_is_published(result):
    heads, rows = columns_and_rows(result)
    assert heads == [("score", "published"), ("score", "measured"), ("undefined", "measured")]
    [(_, low), (title, high)] = rows
    assert title == "high" and low[0] == "0.50" and high[0] == "0.87*" and high[2] == "-"
    assert high[1].startswith("0.90 [0.8") or high[1].startswith("0.91 [0.")


@pytest.mark.parametrize("width", [80, 140])
def test_the_table_as_text(result, width):
    text = as_text(result, width)
    assert max(map(len, text.splitlines())) <= width
    words = " ".join(text.split())
    for part in ("toy: Table 0 of Nobody & Co", "preset cpu, 3 seeds", "* not verified", "read off a figure"):
        assert part in words
    for mark in ("✓ reproduced: High is high.", "✗ not reproduced: Low", "? not testable here: Both"):
        assert mark in words
    assert "low </script>" in words.replace("low </ script>", "low </script>")


@pytest.mark.parametrize("width", [80, 120])
def test_columns_that_do_not_fit_follow_below(result, width):
    columns = [Column("score", f"score{k}") for k in range(9)]
    wide = replace(result, experiment=replace(result.experiment, columns=columns, claims=()))
    lines = as_text(wide, width).splitlines()
    assert max(map(len, lines)) <= width
    # Published and measured stand side by side for all scores, and no interval is broken.
    tables = [line.split() for line in lines if "setting" in line]
    assert len(tables) > 1 and sum(map(len, tables)) == len(tables) + 18
    assert all(table == ["setting", *["published", "measured"] * (len(table) // 2)] for table in tables)
    shown = measured_text(wide.estimate("high", "score"), columns[0])
    assert sum(line.count(shown[shown.index("[") :]) for line in lines) >= 9


@pytest.mark.parametrize("width", range(80, 170))
def test_no_interval_is_broken_beside_long_names(result, width):
    rows = [replace(row, title=f"{row.title}, a setting that is told in very many words") for row in result.every_row]
    columns = [Column("score", f"score {k} of what was observed (%)") for k in range(5)]
    made = replace(result.experiment, columns=columns, claims=(), rows=lambda p: rows)
    shown = measured_text(result.estimate("high", "score"), columns[0])
    text = as_text(replace(result, experiment=made), width)
    assert text.count(shown[shown.index("[") :]) == 5 and max(map(len, text.splitlines())) <= width


def test_notes_of_rows_stand_below_the_table(result):
    rows = [replace(row, note="only a toy." if row.key == "high" else "") for row in result.every_row]
    noted = replace(result, experiment=replace(result.experiment, rows=lambda p: rows))
    assert as_text(noted).count("only a toy.") == 1 and "high: only a toy." in as_text(noted)
    assert "high: only a toy." in page(noted)


def test_what_was_changed_is_named_and_said_of_the_claims(result):
    changed = replace(result, parameters=replace(result.parameters, noise=0.5, high=True, sizes=(3,)), only=("high",))
    words = " ".join(as_text(changed).split())
    told = "preset cpu, 3 seeds; set: noise = 0.5 (preset: 0.01), sizes = 3 (preset: 1,2); row high alone"
    assert told in words and how_run(changed) == told
    assert words.index("Claims are judged with changed parameters: noise, sizes.") < words.index("High is high.")
    assert claims_note(result) == "" and "Claims are judged" not in as_text(result)


def test_claims_of_the_shortest_preset_share_one_sentence(result):
    text = " ".join(as_text(replace(result, preset="smoke")).split())
    assert text.count("Claims are not judged on runs as short as those of the preset smoke.") == 1
    assert text.count("? not testable here: ") == 4 and "✓" not in text


def test_of_many_comparisons_one_is_printed(result):
    many = Claim("All are high.", lambda f: all_of(*(at_least(f, "high", "score", t) for t in (0.1, 0.5, 0.7, 2))))
    found = replace(result, experiment=replace(result.experiment, claims=(many,)))
    words = " ".join(as_text(found).split())
    assert "3 of 4 comparisons hold, 1 does not. score of 'high'" in words and "at least 0.7" not in words
    assert "at least 0.7" in found.to_dict()["claims"][0]["why"] and "at least 0.7" in page(found)


def test_intervals_are_shown_within_the_range_of_a_score():
    wide = Estimate(3, 99.1, 97.8, 100.4)
    assert measured_text(wide, Column("r2", "R2 (%)", 1, most=100)) == "99.1 [97.8, 100.0]"
    assert measured_text(wide, Column("r2", "R2 (%)", 1)) == "99.1 [97.8, 100.4]"
    assert measured_text(Estimate(2, 0.01, -0.03, 0.05), Column("e", "e", 2, least=0)) == "0.01 [0.00, 0.05]"


def test_failures_are_told(failing):
    words = " ".join(as_text(failing).split())
    assert "high, seed 1 failed: ValueError: seed 1" in words and "measured: one seed" not in words
