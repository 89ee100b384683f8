"""Options that many functions share: `progress` and `engine` take the same values wherever they exist."""

import inspect
import sys
from unittest import mock

import numpy as np
import pytest
from sklearn.base import clone

import nearid
from nearid.arrays.open import open_rows
from nearid.base import progress
from nearid.base.errors import InputError
from nearid.engines.base import ENGINES
from nearid.engines.local import LOCAL
from nearid.ica.model import describe

RNG = np.random.default_rng(0)
Z = RNG.laplace(size=(40, 3))
Y, U = Z @ RNG.normal(size=(3, 3)), Z[:, ::-1] + 0.1 * RNG.normal(size=(40, 3))
LABELS, BATCHES = np.array(["a", "b"])[np.arange(40) % 2], np.arange(40) // 10


def _decoder(z):
    return 2 * z


def _module():
    import torch

    return torch.nn.Linear(3, 2)


def _load(folder, **options):
    """Digits unpacked into a cache of their own, anew each time."""
    for unpacked in folder.glob("cache/**/*.npy"):
        unpacked.unlink()
    with mock.patch("pooch.os_cache", lambda name: folder / "cache" / name):
        return nearid.load("digits", unpack=True, **options)


def _reproduce(folder, **options):
    pytest.importorskip("torch")
    small = {"side": 32, "points": 4}
    return nearid.reproduce("square-manifolds", preset="smoke", seeds=1, rows=["x"], parameters=small, **options)


# How to call every public function and method that has one of these options, with a folder for what it writes.
CALLS = {
    "ICA": lambda folder, **o: nearid.ICA(**o).fit(Z),
    "ICA.fit_rows": lambda folder, **o: nearid.ICA().fit_rows(open_rows(Z), describe(Z, open_rows(Z)), **o),
    "ICA.transform_to": lambda folder, **o: nearid.ICA().fit(Z).transform_to(Z, folder / "s.npy", overwrite=True, **o),
    "Whitening": lambda folder, **o: nearid.Whitening(**o).fit(Z),
    "Whitening.transform_to": lambda folder, **o: (
        nearid.Whitening().fit(Z).transform_to(Z, folder / "w.npy", overwrite=True, **o)
    ),
    "lipschitz": lambda folder, **o: nearid.lipschitz(_decoder, Z, **o),
    "cca": lambda folder, **o: nearid.cca(Z, Y, **o),
    "compare": lambda folder, **o: nearid.compare(Z, Y, permutations=1, **o),
    "compare_heads": lambda folder, **o: nearid.compare_heads(Z[:8], Y[:8], Z, Y, pairs=True, draws=3, **o),
    "compare_layers": lambda folder, **o: nearid.compare_layers({"a": Z}, {"b": Y}, **o),
    "compare_models": lambda folder, **o: nearid.compare_models(
        _module(), _module(), Z.astype(np.float32), permutations=1, cache=False, **o
    ),
    "dci": lambda folder, **o: nearid.dci(Z, U, model="l1", **o),
    "deconfound": lambda folder, **o: nearid.deconfound(
        Z, LABELS, BATCHES, conditions="base,ica", classifiers="logistic", folds=2, min_rows=2, **o
    ),
    "diameter": lambda folder, **o: nearid.diameter(Z, **o),
    "explicitness": lambda folder, **o: nearid.explicitness(Z, U, bins=3, **o),
    "extract": lambda folder, **o: nearid.extract(_module(), Z.astype(np.float32), **o),
    "infomec": lambda folder, **o: nearid.infomec(Z, U, **o),
    "linear_cka": lambda folder, **o: nearid.linear_cka(Z, Y, **o),
    "load": _load,
    "mcc": lambda folder, **o: [nearid.mcc(Z, U, method=m, **o) for m in ("pearson", "spearman", "piecewise")],
    "mig": lambda folder, **o: nearid.mig(Z, U, **o),
    "modularity": lambda folder, **o: nearid.modularity(Z, U, **o),
    "r2": lambda folder, **o: nearid.r2(Z, U, **o),
    "reproduce": _reproduce,
    "sap": lambda folder, **o: nearid.sap(Z, U, **o),
    "score": lambda folder, **o: nearid.score(Z, U, measures="mcc,r2", permutations=1, **o),
    "svcca": lambda folder, **o: nearid.svcca(Z, Y, **o),
    "unmix": lambda folder, **o: nearid.unmix(Z, folder / "out", overwrite=True, **o),
}


def _taking(option):
    """Names of the public functions, estimators and their methods that have an option."""
    found = []
    for name in nearid.__all__:
        thing = getattr(nearid, name)
        if not callable(thing) or (inspect.isclass(thing) and issubclass(thing, Exception)):
            continue
        callables = {name: thing}
        if inspect.isclass(thing):
            methods = {m: getattr(thing, m) for m in dir(thing) if not m.startswith("_")}
            callables |= {f"{name}.{m}": method for m, method in methods.items() if callable(method)}
        found += [called for called, at in callables.items() if option in inspect.signature(at).parameters]
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", _taking("progress"))
def test_progress_may_be_a_function_but_nothing_else(name, tmp_path):
    stages = []

    def report(stage, steps):
        assert isinstance(stage, str) and steps > 0
        stages.append(stage)
        return lambda note="": None

    CALLS[name](tmp_path, progress=report)
    assert stages
    with pytest.raises(nearid.InputError, match=r"progress .*a function"):
        CALLS[name](tmp_path, progress="yes")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", _taking("progress"))
def test_progress_draws_bars_on_stderr(name, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    monkeypatch.setenv("TERM", "xterm")
    CALLS[name](tmp_path, progress=True)
    out, err = capsys.readouterr()
    assert out == "" and "0:00:0" in err


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", _taking("engine"))
def test_engine_is_a_name_an_address_or_an_engine(name, tmp_path, dask_client, monkeypatch):
    from nearid.engines.cluster import Cluster, open_cluster

    address = dask_client.scheduler_info()["address"]
    # Starting a cluster of one's own has tests of its own, and takes seconds.
    monkeypatch.setitem(ENGINES, "dask", lambda name: open_cluster(address if name == "dask" else name))
    for value in ("local", LOCAL, "dask", address, Cluster(dask_client)):
        CALLS[name](tmp_path, engine=value)
    with pytest.raises(nearid.InputError, match="The engine must be"):
        CALLS[name](tmp_path, engine="dusk")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nearid.reproduce("square-manifolds", seeds=1.5), "seeds is 1.5, but a whole number of at least 1"),
        (lambda: nearid.reproduce("square-manifolds", seeds=0), "seeds is 0, but a whole number of at least 1"),
        (lambda: nearid.reproduce("square-manifolds", rows="x"), "rows is 'x', but a list"),
        (lambda: nearid.load("digits", size="x"), "size is 'x', but a whole number of at least 1"),
        (lambda: nearid.load("digits", size=0), "size is 0, but a whole number of at least 1"),
        (lambda: nearid.load("digits", progress="yes"), "progress is 'yes'"),
    ],
)
def test_options_of_the_lab_are_checked_by_name(call, message):
    with pytest.raises(nearid.InputError, match=message):
        call()


def test_a_copy_of_an_estimator_runs_on_the_same_engine(dask_client):
    from nearid.engines.cluster import Cluster

    cluster = Cluster(dask_client)
    for estimator in (nearid.ICA(engine=cluster), nearid.Whitening(engine=cluster)):
        assert clone(estimator).engine is cluster


def test_masks_are_never_ignored(rng):
    """What a mask hides is no value: every way in refuses it."""
    z = rng.laplace(size=(60, 3))
    hidden = np.ma.array(z, mask=np.arange(180).reshape(60, 3) % 7 == 0)
    label = np.ma.array(np.arange(60) % 2, mask=np.arange(60) % 5 == 0)
    attempts = (
        lambda: nearid.r2(z, {"a": hidden[:, 0]}),
        lambda: nearid.r2(z, hidden[:, 0]),
        lambda: nearid.score(z, hidden),
        lambda: nearid.ICA().fit(hidden),
        lambda: nearid.Whitening().fit(hidden),
        lambda: nearid.Linear().fit(z, hidden),
        lambda: nearid.deconfound(z, label, np.arange(60) // 20),
        lambda: nearid.open_rows(z, ids=label),
        lambda: nearid.compare(z, z, blocks=label),
    )
    for attempt in attempts:
        with pytest.raises(InputError, match="masked array"):
            attempt()
