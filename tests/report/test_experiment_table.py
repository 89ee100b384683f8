"""The experiment's table: published and measured side by side, every claim marked."""

from dataclasses import replace

import pytest

from nearid.experiments.base import Column
from nearid.report.experiment_table import as_text, columns_and_rows, measured_text


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


def test_failures_are_told(failing):
    words = " ".join(as_text(failing).split())
    assert "high, seed 1 failed: ValueError: seed 1" in words and "measured: one seed" not in words
