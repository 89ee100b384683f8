"""The experiment supervised: its rows, and its smoke preset."""

import json

import pytest

from nearid.lab.framework.run import reproduce
from nearid.lab.framework.settings import settle
from nearid.lab.papers.reizinger.supervised import PUBLISHED, SUPERVISED, cell, rows


def test_every_published_value_has_its_row():
    found = {r.key: {k: v.value for k, v in r.published.items()} for r in rows(settle(SUPERVISED, "cpu"))}
    for key, z in PUBLISHED.items():
        assert found.pop(f"{key}-free") == {"r2_z": z}
    assert not any(found.values())


def test_the_smoke_preset(tmp_path, inline):
    pytest.importorskip("torch", reason="the extra `train` is not installed")
    found = reproduce(SUPERVISED, tmp_path / "out", preset="smoke", seeds=1, changes={"steps": 2})
    assert len(found.cells) == len(found.rows) == 38 and not found.failures
    here = cell(found.cells[0].cell.parameters, 0, tmp_path / "here")
    assert found.cells[0].data == json.loads(json.dumps(here))
    # Classes are the labels: half of five of them determine no map.
    assert found.scores("base-unit", "r2_w") and not found.scores("few-classes-unit", "r2_w")
