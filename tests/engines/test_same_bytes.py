"""Every pass over rows on a cluster: the bytes of this process, also when workers die; one option in all commands."""

import json
import os
import signal

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest

pytest.importorskip("distributed", reason="the extra `distributed` is not installed")

import nearid
import nearid.engines.cluster as room
import nearid.engines.local as local
import nearid.ica.fit as fit
import nearid.measures.diameter as diameters
import nearid.questions.deconfound.attribution as attribution
import nearid.questions.deconfound.corrections as corrections
from nearid.arrays import Rows, open_rows
from nearid.base.errors import EngineError, InputError
from nearid.engines.cluster import Cluster

# Commands that read rows of any number, block by block.
STREAMING = {"apply", "compare", "deconfound", "layers", "score", "unmix"}
# The others: heads and lipschitz hold what they read in memory, extract runs a network, the rest reads no rows.
OTHERS = {"heads", "lipschitz", "extract", "data", "demo", "reproduce"}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """256 rows a block, and bounds instead of an exact diameter, so that every pass has many tasks."""
    monkeypatch.setattr(local, "BLOCK_BYTES", 1)
    monkeypatch.setattr(diameters.search, "__kwdefaults__", {**diameters.search.__kwdefaults__, "budget": 0})


@pytest.fixture
def files(rng, tmp_path):
    """Two files of rows with ids in other orders, wide enough for the repetitions of chance to be tasks."""
    x = rng.normal(size=(6000, 36)).astype(np.float32)
    y = x @ np.linalg.qr(rng.normal(size=(36, 36)))[0].astype(np.float32) + rng.normal(size=x.shape).astype(np.float32)
    order = rng.permutation(len(x))
    np.savez(tmp_path / "x.npz", x=x, id=np.arange(len(x)))
    np.savez(tmp_path / "y.npz", y=y[order], id=order)
    return tmp_path / "x.npz", tmp_path / "y.npz"


def compared(files, engine, progress=False):
    return nearid.compare(*files, ids="id", in_sample=True, permutations=33, engine=engine, progress=progress)


def plain(result):
    return json.dumps(result.to_dict(), sort_keys=True)


def test_compare(dask_client, files):
    assert plain(compared(files, Cluster(dask_client))) == plain(compared(files, None))


def test_compare_of_several_runs_drops_the_same_rows(dask_client, rng):
    runs = [rng.normal(size=(2000, 3)) for _ in range(3)]
    runs[1][[5, 1900], 1] = np.nan
    here, there = (
        nearid.compare(*runs, drop_nonfinite=True, permutations=1, engine=engine)
        for engine in (None, Cluster(dask_client))
    )
    assert plain(there) == plain(here)


def test_similarities_and_the_diameter(dask_client, files):
    x, y = (open_rows(path, ids="id") for path in files)
    cluster = Cluster(dask_client)
    for question in (nearid.cca, nearid.svcca, nearid.linear_cka):
        there, here = question(x, y, engine=cluster), question(x, y)
        assert there.value == here.value and np.array_equal(there.arrays.get("ranks"), here.arrays.get("ranks"))
    for budget in (0, 1e12):
        there, here = (nearid.diameter(x, budget=budget, engine=engine) for engine in (cluster, None))
        assert there.parts == here.parts and here.exact == (budget > 0)
        np.testing.assert_array_equal(there.pair, here.pair)


def test_layers(dask_client, rng):
    x = rng.normal(size=(1500, 4))
    sides = {"a": x, "b": x**3}, {"c": x + rng.normal(size=x.shape)}
    here, there = (
        nearid.compare_layers(*sides, measures="cka,r2,epsilon_rigid", permutations=3, engine=engine)
        for engine in (None, Cluster(dask_client))
    )
    assert plain(there) == plain(here)


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("form", ["npy", "zarr", "safetensors", "parquet"])
def test_unmix_and_its_components(dask_client, rng, tmp_path, form):
    np.save(tmp_path / "x.npy", rng.laplace(size=(3000, 4)) @ rng.normal(size=(4, 4)))
    for name, engine in (("here", None), ("there", Cluster(dask_client))):
        nearid.unmix(tmp_path / "x.npy", tmp_path / name, format=form, engine=engine)
    here, there = contents(tmp_path / "here"), contents(tmp_path / "there")
    assert here.keys() == there.keys() and sum("components" in name for name in here) >= 1
    # The description has the time of the fit.
    assert all(here[name] == there[name] for name in here if name != "model.json")


@pytest.mark.parametrize("held", [0, 1 << 12, 1 << 23])
def test_a_fit_reads_rows_on_the_cluster_only(dask_client, rng, tmp_path, monkeypatch, held):
    """All rows, a part of them, or none are whitened and held; starts, the contrast and halves are compared."""
    monkeypatch.setattr(fit, "MOST_HELD", held)
    monkeypatch.setattr(fit, "PART_ENTRIES", 1 << 10)
    np.save(tmp_path / "x.npy", rng.laplace(size=(9000, 3)) @ rng.normal(size=(3, 3)))
    options = {"contrast": "auto", "stability": 1, "max_passes": 60}
    cluster = Counted(dask_client)
    there, here = (nearid.unmix(tmp_path / "x.npy", engine=engine, **options) for engine in (cluster, None))
    own = {"_first_moments", "_contrast_moments", "_seen"}
    assert own <= cluster.tasks and ("_whitened" in cluster.tasks) == (held > 0)
    np.testing.assert_array_equal(there.components_, here.components_)
    assert there.gradients_ == here.gradients_ and there.diagnostics_.starts == here.diagnostics_.starts
    assert (here.diagnostics_.starts == 3) == (held > 0)


def test_apply_takes_an_engine(nearid, dask_client, rng, tmp_path):
    np.save(tmp_path / "x.npy", rng.laplace(size=(3000, 3)))
    assert nearid("unmix", "x.npy", "-o", "ica").returncode == 0
    address = dask_client.scheduler_info()["address"]
    done = nearid("apply", "ica", "x.npy", "-o", "there.zarr", "--engine", address)
    assert done.returncode == 0, done.stderr
    assert nearid("apply", "ica", "x.npy", "-o", "here.zarr").returncode == 0
    assert contents(tmp_path / "here.zarr") == contents(tmp_path / "there.zarr")


class Counted(Cluster):
    """A cluster that records which tasks it maps."""

    def __init__(self, client):
        super().__init__(client)
        self.tasks = set()

    def map(self, task, items, *shared, **options):
        self.tasks.add(task.__name__)
        # An argument of their own is sent once. Within another argument, rows would be sent with each condition.
        assert any(isinstance(value, Rows) for value in shared), task.__name__
        return super().map(task, items, *shared, **options)


@pytest.fixture
def wells(rng, tmp_path, monkeypatch):
    """A table of 1,200 wells in three row groups, with a plate effect in one column; every pass has several pieces."""
    for module in (attribution, corrections):
        monkeypatch.setattr(module, "PIECE", 256)
    n = 1200
    drug, plate = rng.integers(0, 3, n), rng.integers(0, 6, n)
    x = rng.laplace(size=(n, 5))
    x[:, 0] += 3 * (drug == 1)
    x[:, 1] += plate
    table = pd.DataFrame(x.astype(np.float32), columns=list("abcde"))
    table["drug"], table["plate"] = np.array(["DMSO", "x", "y"])[drug], [f"P{p}" for p in plate]
    table["well"] = [f"{'ABCDEFGH'[k]}{l + 1:02d}" for k, l in rng.integers(0, 8, (n, 2))]
    table.loc[7, "c"] = np.nan
    table.to_parquet(tmp_path / "wells.parquet", row_group_size=500)
    np.save(tmp_path / "other.npy", x - plate[:, None])
    return tmp_path / "wells.parquet"


def deconfounded(wells, out, engine):
    return nearid.deconfound(
        wells,
        "drug",
        "plate",
        control="DMSO",
        position="well",
        conditions="base,ica,tvn",
        also={"other": wells.parent / "other.npy"},
        classifiers="logistic",
        directions="most",
        folds=2,
        top=(),
        nonfinite="rows",
        out=wells.parent / out,
        engine=engine,
    )


def without_times(result):
    told = result.to_dict()
    del told["provenance"]
    return json.dumps(told, sort_keys=True).replace("there.", "here.")


def test_deconfound(dask_client, wells, tmp_path):
    cluster = Counted(dask_client)
    there, here = deconfounded(wells, "there.parquet", cluster), deconfounded(wells, "here.parquet", None)
    assert without_times(there) == without_times(here)
    assert {"_places_in", "_nonfinite_rows", "_seen", "_sums", "_batch_sums", "_well_sums", "mapped"} <= cluster.tasks
    assert (tmp_path / "there.parquet").read_bytes() == (tmp_path / "here.parquet").read_bytes()


@pytest.mark.timeout(240)
def test_deconfound_and_apply_of_its_model_on_processes(processes, nearid, wells, tmp_path):
    there, here = (
        deconfounded(wells, f"{name}.parquet", at) for name, at in (("there", processes.address), ("here", None))
    )
    assert without_times(there) == without_times(here)
    pd.read_parquet(wells).iloc[::-1].to_parquet(tmp_path / "new.parquet", row_group_size=350)
    for name, more in (("there", ["--engine", processes.address]), ("here", [])):
        for suffix in ("parquet", "zarr"):
            done = nearid("apply", "here.model", "new.parquet", "-o", f"new-{name}.{suffix}", *more)
            assert done.returncode == 0, done.stderr
    groups = pyarrow.parquet.ParquetFile(tmp_path / "new-there.parquet").metadata
    assert [groups.row_group(at).num_rows for at in range(groups.num_row_groups)] == [350, 350, 350, 150]
    assert (tmp_path / "new-there.parquet").read_bytes() == (tmp_path / "new-here.parquet").read_bytes()
    assert contents(tmp_path / "new-here.zarr") == contents(tmp_path / "new-there.zarr")
    frame = pd.read_parquet(tmp_path / "new-there.parquet")
    np.testing.assert_array_equal(frame[list("abcde")], open_rows(tmp_path / "new-there.zarr").read(0, 1200))


def test_apply_of_a_cleaning_uses_its_engine(nearid, wells, tmp_path):
    deconfounded(wells, "here.parquet", None)
    done = nearid("apply", "here.model", "wells.parquet", "-o", "new.parquet", "--engine", "nowhere")
    assert done.returncode == 2 and "The engine must be" in done.stderr
    assert not (tmp_path / "new.parquet").exists()


def test_score_of_more_rows_than_are_held(dask_client, rng, tmp_path):
    u = rng.uniform(size=(2000, 3)).astype(np.float32)
    np.save(tmp_path / "z.npy", u @ rng.normal(size=(3, 4)).astype(np.float32))
    factors, options = dict(zip("abc", u.T, strict=True)), {"max_rows": 300, "permutations": 1, "resolve": "ica"}
    here, there = (
        nearid.score(tmp_path / "z.npy", factors, measures="mcc,r2", engine=engine, **options)
        for engine in (None, Cluster(dask_client))
    )
    assert plain(there) == plain(here)


def test_a_row_that_is_refused_on_a_worker_leaves_nothing(dask_client, rng, tmp_path):
    x = rng.laplace(size=(3000, 3))
    fitted = nearid.Whitening().fit(x)
    x[2000, 1] = np.nan
    np.save(tmp_path / "x.npy", x)
    with pytest.raises(InputError, match=r"x.npy has nan at row 2000, column 1"):
        fitted.transform_to(tmp_path / "x.npy", tmp_path / "y.zarr", engine=Cluster(dask_client))
    assert os.listdir(tmp_path) == ["x.npy"]


def killing(address, kills):
    """A progress function that kills a worker when a stage has made so many steps; `kills` empties itself."""
    from distributed import Client

    def stage(name, steps):
        count = 0

        def tick(note=""):
            nonlocal count
            count += 1
            if kills.get(name) == count:
                del kills[name]
                with Client(address, set_as_default=False) as client:
                    client.wait_for_workers(2, timeout=60)
                    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

        return tick

    return stage


@pytest.mark.timeout(240)
def test_a_worker_killed_in_each_pass_of_compare_changes_nothing(processes, files):
    kills = {"moments": 3, "errors": 4, "diameter": 3, "chance": 1}
    there = compared(files, processes.address, killing(processes.address, kills))
    assert not kills and plain(there) == plain(compared(files, None))


@pytest.mark.timeout(240)
def test_a_worker_killed_while_components_are_written_leaves_nothing_half_written(processes, rng, tmp_path):
    x = rng.laplace(size=(20_000, 4))
    np.save(tmp_path / "x.npy", x)
    fitted, kills = nearid.Whitening().fit(x), {"components": 9}
    stage = killing(processes.address, kills)
    fitted.transform_to(tmp_path / "x.npy", tmp_path / "there.zarr", engine=processes.address, progress=stage)
    fitted.transform_to(tmp_path / "x.npy", tmp_path / "here.zarr")
    assert not kills and contents(tmp_path / "here.zarr") == contents(tmp_path / "there.zarr")


@pytest.mark.timeout(240)
@pytest.mark.parametrize("pass_", ["moments", "errors"])
def test_a_scheduler_killed_in_a_pass_of_compare_is_told(processes, files, monkeypatch, capfd, pass_):
    monkeypatch.setattr(room, "ANSWER", 3)

    def stage(name, steps):
        count = 0

        def tick(note=""):
            nonlocal count
            count += 1
            if (name, count) == (pass_, 3):
                processes.scheduler.kill()

        return tick

    with pytest.raises(EngineError, match="no longer answers"):
        compared(files, processes.address, stage)
    assert capfd.readouterr().err == ""


@pytest.mark.timeout(240)
def test_a_scheduler_killed_while_components_are_written_leaves_nothing(processes, rng, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(room, "ANSWER", 3)
    x = rng.laplace(size=(20_000, 4))
    folder = tmp_path / "out"
    folder.mkdir()
    count = 0

    def stage(name, steps):
        def tick(note=""):
            nonlocal count
            count += 1
            if count == 9:
                processes.scheduler.kill()

        return tick

    with pytest.raises(EngineError, match="no longer answers"):
        nearid.Whitening().fit(x).transform_to(x, folder / "y.zarr", engine=processes.address, progress=stage)
    assert not os.listdir(folder)
    assert capfd.readouterr().err == ""


def test_every_command_that_reads_rows_has_the_option():
    from nearid.cli.commands import COMMANDS, _command

    assert {*COMMANDS} == STREAMING | OTHERS
    for name in COMMANDS:
        own = [p for p in getattr(_command(name), "params", []) if "--engine" in p.opts or p.name == "engine"]
        expected = [("engine", ["--engine"], None)] if name in STREAMING else []
        # The lab's experiments run as tasks of an engine, which is named in the same way.
        assert [(p.name, p.opts, p.default) for p in own] == expected or name == "reproduce", name
