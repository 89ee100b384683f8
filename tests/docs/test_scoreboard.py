"""The scoreboard of docs/reproduce.md is what docs/tools/scoreboard.py writes from the stored results."""

import importlib.util
import json
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
spec = importlib.util.spec_from_file_location("scoreboard", DOCS / "tools" / "scoreboard.py")
board = importlib.util.module_from_spec(spec)
spec.loader.exec_module(board)


def test_the_page_has_the_table_of_the_stored_results():
    text = board.PAGE.read_text(encoding="utf-8")
    assert board.page(text) == text


def test_every_claim_is_counted():
    for file in sorted((DOCS / "results").glob("*.json")):
        cells = board.line(file).split(" | ")
        told = json.loads(file.read_text(encoding="utf-8"))
        assert sum(map(int, cells[5:9])) == len(told["claims"]), file.stem


def test_published_values_are_of_the_same_rows_where_these_have_any():
    def row(name, published, mean):
        return {"row": name, "scores": {"r2": {"published": published and {"value": published}, "mean": mean}}}

    table = [row("a", 99.0, 98.0), row("b", 97.5, 96.25), row("c", None, 3.0)]
    assert board.figures(table, "r2", ("a", "b")) == ("97.5 to 99", "96.25 to 98")
    assert board.figures(table, "r2", ("a",)) == ("99", "98")
    assert board.figures(table, "r2", ("c",)) == ("97.5 to 99", "3")
    assert board.figures([row("a", None, 1.0)], "r2", ("a",)) == ("no number", "1")
