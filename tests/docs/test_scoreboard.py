"""docs/reproduce.md, its tables and its pictures are what docs/tools/scoreboard.py writes from the stored results."""

import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest

from nearid.base.errors import InputError
from nearid.lab.framework.experiment import HOMES, experiment

DOCS = Path(__file__).parents[2] / "docs"
spec = importlib.util.spec_from_file_location("scoreboard", DOCS / "tools" / "scoreboard.py")
board = importlib.util.module_from_spec(spec)
spec.loader.exec_module(board)
FILES = sorted((DOCS / "results").glob("*.json"))


@pytest.fixture(scope="module")
def written():
    """All files that the program writes, and what it writes into them."""
    return board.everything()


def test_what_the_program_writes_is_up_to_date(written):
    for place, text in written.items():
        stored = place.read_text(encoding="utf-8")
        if place.suffix != ".json":
            assert stored == text, f"{place.name}: run python docs/tools/scoreboard.py"


def measured(record):
    """What a run has measured, from a record of its result."""
    cells = [[cell[key] for key in ("row", "seed", "scores", "curves", "seconds")] for cell in record["cells"]]
    scores = [[row["row"], {key: score["by_seed"] for key, score in row["scores"].items()}] for row in record["table"]]
    return {"provenance": record["provenance"], "failures": record["failures"], "cells": cells, "scores": scores}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_page_is_made_from_what_was_measured_and_statuses_are_up_to_date(file, written):
    stored, now = json.loads(file.read_text(encoding="utf-8")), json.loads(written[file])
    # Through JSON, which has texts for the numbers of seeds.
    read = json.loads(json.dumps(board.stored(file.stem).to_dict()))
    assert measured(read) == measured(now) == measured(stored)
    # Sentences of claims may be worded better without another run: the page has them as they are now.
    assert [c["status"] for c in read["claims"]] == [c["status"] for c in stored["claims"]]


def test_a_result_is_stored_without_the_folder_of_its_run(tmp_path, monkeypatch):
    record = json.loads((DOCS / "results" / "square-manifolds.json").read_text(encoding="utf-8"))
    record["provenance"]["command"] = "nearid reproduce square-manifolds -o /somewhere/out --seeds 3"
    (tmp_path / "result.json").write_text(json.dumps(record), encoding="utf-8")
    monkeypatch.setattr(board, "RESULTS", tmp_path)
    stored = json.loads(board.store(tmp_path / "result.json").read_text(encoding="utf-8"))
    assert (tmp_path / "square-manifolds.json").exists()
    assert stored["provenance"].pop("command") == "nearid reproduce square-manifolds --seeds 3"
    del record["provenance"]["command"]
    assert stored == record


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_stored_command_holds_a_scratch_path(file):
    assert "/" not in json.loads(file.read_text(encoding="utf-8"))["provenance"]["command"].replace("docs/results/", "")


def test_no_picture_is_left_over_and_all_are_small():
    there = set(board.PICTURES.iterdir())
    assert there == set(board.pictures())
    assert all(place.stat().st_size < 100_000 for place in there)


def test_every_claim_is_counted_once():
    every = [json.loads(f.read_text(encoding="utf-8"))["claims"] for f in FILES if f.stem in HOMES]
    statuses = [claim["status"] for claims in every for claim in claims]
    total = "/".join(str(statuses.count(status)) for status in board.COUNTED)
    *_, last, sentence = filter(None, board.scoreboard().splitlines())
    assert f"**{total}**" in last and f"{len(statuses)} claims" in last
    # Of results of an older version, the file may not say which claims were added.
    stated = [o.status for f in FILES if f.stem in HOMES for c, o in board.stored(f.stem).outcomes if not c.added]
    said = f"The papers state {len(stated)} of the {len(statuses)} claims; nearid added the others."
    assert sentence.startswith(f"{said} {stated.count('reproduced')} of these are reproduced:")
    assert "/".join(str(stated.count(status)) for status in board.COUNTED) in last


def test_every_stored_result_has_a_line_with_its_command_and_every_experiment_a_section():
    text = board.PAGE.read_text(encoding="utf-8")
    for file in FILES:
        command = board.again(board.stored(file.stem))
        # The whole of it in the section; the table has the beginning of a long one.
        assert f"```sh\n{command}\n```" in text and f"`{command[:60]}" in text
    assert re.findall(r"^### (.*)$", text, re.M) == [e.name for _, group in board.by_paper() for e in group]


def stored_wholes():
    return [board.stored(f.stem) for f in FILES if f.stem in HOMES]


def test_every_claim_that_is_not_reproduced_has_its_reason_on_the_page(written):
    text = written[board.PAGE]
    for result in stored_wholes():
        for claim, outcome in result.outcomes:
            why = board.reason(claim, outcome, result)
            assert bool(why) == (outcome.status in ("not reproduced", "undecided")), claim.text
            assert not why or f"<br>*{why}*" in text


def test_reasons_name_claims_that_there_are_and_lines_can_be_filled():
    for e in (board.stored(f.stem).experiment for f in FILES if f.stem in HOMES):
        for words in e.section.reasons:
            assert any(claim.text.startswith(words) for claim in experiment(e.name).claims), words
    for result in stored_wholes():
        assert result.older or (result.experiment.section.brief is None) == (board.brief(result) is None)


def test_figures_of_a_text_are_those_of_the_result():
    result = board.stored("square-manifolds")
    mean = result.estimate("xr", "anisotropy").value
    assert board.filled("It is {xr:anisotropy}.", result) == f"It is {mean:.4f}."
    with pytest.raises(InputError, match=r"names \{xr:nothing\}, which is not stored"):
        board.filled("It is {xr:nothing}.", result)
    trained = board.stored("diet")
    ends = [np.interp([0.8 * c["x"][-1], c["x"][-1]], c["x"], c["y"]) for _, _, c in curves_of(trained, "base-free")]
    assert board.filled("{base-free:r2_z^}", trained) == f"{np.mean([b - a for a, b in ends]):+.2g}"


def curves_of(result, row):
    """Row, seed and curve of R2 from the file itself."""
    cells = json.loads((DOCS / "results" / f"{result.experiment.name}.json").read_text(encoding="utf-8"))["cells"]
    return [(cell["row"], cell["seed"], cell["curves"]["r2_z"]) for cell in cells if cell["row"] == row]
