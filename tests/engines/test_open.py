"""Engines by name, and what is said of names that lead nowhere."""

import sys

import numpy as np
import pytest

import nearid.engines.cluster as cluster
from nearid.arrays import open_rows
from nearid.base.errors import EngineError, InputError
from nearid.engines.local import LOCAL, Local
from nearid.engines.open import open_engine
from nearid.folds import row_moments


@pytest.mark.parametrize("name", [None, "local"])
def test_this_process(name):
    with open_engine(name) as engine:
        assert engine is LOCAL


def test_an_engine_stays_as_it_is():
    mine = Local()
    with open_engine(mine) as engine:
        assert engine is mine


@pytest.mark.parametrize("name", ["spark", 3])
def test_other_names_are_refused(name):
    with pytest.raises(InputError, match=f"not {name!r}"), open_engine(name):
        pass


@pytest.mark.parametrize("name", ["dask", "tcp://127.0.0.1:8786"])
def test_without_distributed_the_extra_is_named(monkeypatch, name):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(EngineError, match=r"pip install 'nearid\[distributed\]'"), open_engine(name):
        pass


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "carrier://pigeon"])
def test_an_address_without_a_scheduler_is_told(monkeypatch, address):
    pytest.importorskip("distributed", reason="the extra `distributed` is not installed")
    monkeypatch.setattr(cluster, "ANSWER", 0.5)
    with pytest.raises(EngineError, match=f"No Dask scheduler can be reached at {address}"), open_engine(address):
        pass


def test_a_cluster_of_this_machine_lives_as_long_as_it_is_needed(rng):
    distributed = pytest.importorskip("distributed", reason="the extra `distributed` is not installed")
    x = rng.normal(size=(3000, 3))
    with open_engine("dask") as engine:
        address = engine._address
        found, _ = row_moments(open_rows(x), engine=engine)
    np.testing.assert_array_equal(found.scatter, row_moments(open_rows(x))[0].scatter)
    with pytest.raises(OSError, match="Timed out"):
        distributed.Client(address, timeout=0.5, set_as_default=False)
