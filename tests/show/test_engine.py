"""Where passes run, as options of a command."""

import json

import numpy as np
import pytest

from nearid.base.errors import InputError
from nearid.show.engine import EngineName, engine_of


def test_what_the_options_ask_for():
    assert engine_of(EngineName.local, None) == "local"
    assert engine_of(EngineName.dask, None) == "dask"
    assert engine_of(EngineName.dask, "tcp://127.0.0.1:8786") == "tcp://127.0.0.1:8786"


def test_options_that_contradict_or_lead_nowhere_are_refused():
    with pytest.raises(InputError, match="needs --engine dask"):
        engine_of(EngineName.local, "tcp://127.0.0.1:8786")
    with pytest.raises(InputError, match="must be an address"):
        engine_of(EngineName.dask, "here")


def test_compare_gives_the_same_figures_on_dask(nearid, dask_client, tmp_path, rng):
    x = rng.normal(size=(600, 3))
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", x @ rng.normal(size=(3, 3)))
    address = dask_client.scheduler_info()["address"]
    here = nearid("compare", "x.npy", "y.npy", "--json")
    there = nearid("compare", "x.npy", "y.npy", "--json", "--engine", address)
    assert there.returncode == 0, there.stderr
    assert json.loads(there.stdout) == json.loads(here.stdout)
