"""The experiment diet: its rows, and its smoke preset."""

import json

import pytest

from nearid.lab.framework.run import reproduce
from nearid.lab.framework.settings import settle
from nearid.lab.papers.reizinger.diet import DIET, PUBLISHED, cell, rows


def test_every_published_value_has_its_row():
    found = {r.key: {k: v.value for k, v in r.published.items()} for r in rows(settle(DIET, "paper"))}
    for key, heads in PUBLISHED.items():
        for head, (z, w) in zip(("unit", "free"), heads, strict=True):
            assert found.pop(f"{key}-{head}") == {"r2_z": z, "r2_w": w}
    assert not any(found.values())


def test_fewer_instances_have_no_published_value():
    by_key = {r.key: r for r in rows(settle(DIET, "cpu"))}
    assert by_key["base-unit"].published and not by_key["many-instances-unit"].published


def test_the_smoke_preset(tmp_path, inline):
    pytest.importorskip("torch", reason="the extra `train` is not installed")
    found = reproduce(DIET, tmp_path / "out", preset="smoke", seeds=1, changes={"steps": 2})
    assert len(found.cells) == len(found.rows) == 38 and not found.failures
    here = cell(found.cells[0].cell.parameters, 0, tmp_path / "here")
    assert found.cells[0].data == json.loads(json.dumps(here))
    # Instances are the labels: equal rows within a class can be asked for.
    assert found.scores("base-unit", "within") and not found.scores("many-classes-unit", "within")
    assert (tmp_path / "out" / "smoke,seeds=1,steps=2" / "report.html").stat().st_size > 10_000
