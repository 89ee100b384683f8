"""The experiment's table: published and measured side by side, every claim marked."""

import pytest

from nearid.report.experiment_table import as_text, columns_and_rows


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


def test_failures_are_told(failing):
    words = " ".join(as_text(failing).split())
    assert "high, seed 1 failed: ValueError: seed 1" in words and "measured: one seed" not in words
