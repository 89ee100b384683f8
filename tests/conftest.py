"""Shared set-up: real data where NEARID_DATA names it, toy experiments, and hypothesis without a clock."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

# Spawned processes are given this path, too, and import the toy experiments from it.
HERE = str(Path(__file__).resolve().parent)
if HERE not in sys.path:
    sys.path.append(HERE)

# Fixtures that tests of several rooms use.
pytest_plugins = ("command_line", "pages", "s3_server", "toy_results")

# A loaded machine is no failure: examples are bounded by number, the suite by pytest-timeout.
# NEARID_TEST_SEED=k shifts every seed that numpy and torch are given in this process, and hypothesis draws afresh: no
# test may depend on its draws. Without it every run of the suite is the same. Tests marked own_seeds keep theirs.
SHIFT = int(os.environ.get("NEARID_TEST_SEED", "0"))
kept = False
settings.register_profile("nearid", deadline=None, max_examples=40, derandomize=SHIFT == 0)
settings.load_profile("nearid")


def shifted(seed):
    if isinstance(seed, (list, tuple)) and seed:
        return [shifted(seed[0]), *seed[1:]]
    return seed + SHIFT if not kept and isinstance(seed, (int, np.integer)) and seed >= 0 else seed


def pytest_configure() -> None:
    if not SHIFT:
        return
    np.random.default_rng = lambda seed=None, make=np.random.default_rng: make(shifted(seed))
    try:
        import torch
    except ImportError:
        return
    torch.manual_seed = lambda seed, set_to=torch.manual_seed: set_to(shifted(seed))


def pytest_runtest_setup(item) -> None:
    global kept
    kept = item.get_closest_marker("own_seeds") is not None


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder that NEARID_DATA points to, and an empty cache; gives a function for the folder of a data set."""
    monkeypatch.setenv("NEARID_DATA", str(tmp_path / "given"))
    monkeypatch.setattr("pooch.os_cache", lambda name: tmp_path / "cache" / name)

    def folder(name):
        path = tmp_path / "given" / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    return folder


@pytest.fixture(scope="module")
def dask_client():
    """A client of two one-thread workers in this process: quick to start, and everything still goes through Dask."""
    distributed = pytest.importorskip("distributed", reason="the extra `distributed` is not installed")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=False,
            protocol="tcp",
            dashboard_address=None,
            # No server on the dashboard's usual port, which may be in use.
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with real data and weights, or a skip that says where it was looked for."""
    folder = os.environ.get("NEARID_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("real data is not here: set NEARID_DATA to the folder that holds it")
    return Path(folder)
