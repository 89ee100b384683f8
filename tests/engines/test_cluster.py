"""The Dask engine: the same bytes as in this process, and what happens when parts of the cluster die."""

import gc
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from threading import Event

import numpy as np
import pytest

pytest.importorskip("distributed", reason="the extra `distributed` is not installed")

import nearid.engines.cluster as room
import nearid.engines.local as local
import nearid.folds as folds
from nearid.arrays import open_rows, pair_rows
from nearid.base.errors import EngineError, InputError, ReadError
from nearid.engines.base import FAN_IN
from nearid.engines.cluster import Cluster
from nearid.engines.local import LOCAL
from nearid.ica.contrast import CONTRASTS
from nearid.ica.fit import IcaOptions, fit_ica
from nearid.ica.passes import RowPasses
from nearid.questions.unmix.result import ICA
from nearid.questions.unmix.run import unmix


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """256 rows a block, so that there is a tree to merge in."""
    monkeypatch.setattr(local, "BLOCK_BYTES", 1)


@pytest.fixture
def x(rng):
    return rng.laplace(size=(8000, 4)) @ rng.normal(size=(4, 4)) + 3


def both_ways(engine, run):
    """What run(engine) gives in this process and on the engine, as bytes."""
    return [[np.asarray(a).tobytes() for a in run(e)] for e in (LOCAL, engine)]


def moments(engine, x, **options):
    found, kept = folds.row_moments(open_rows(x), engine=engine, **options)
    return found.n, found.mean, found.scatter, kept if kept is not None else True


def by_folds(engine, x, y):
    pair = pair_rows(open_rows(x, ids=np.arange(len(x))), open_rows(y, ids=np.arange(len(x))[::-1] + 5))
    found = folds.fold_moments(pair, folds.assign(pair.n, 3, 0), 3, engine=engine)
    return [value for part in found.parts for value in (part.n, part.mean, part.scatter)]


def sweep(engine, x, dtype):
    passes = RowPasses(open_rows(x), None, x.mean(axis=0), CONTRASTS["logcosh"], np.dtype(dtype), engine=engine)
    found = passes.contrast_sums(np.eye(4), True)
    return found.products, found.slopes, found.values


def test_passes_give_the_same_bytes(dask_client, x, monkeypatch):
    engine = Cluster(dask_client)
    spoiled = x.copy()
    spoiled[[3, 700, 7999], 1] = np.nan
    cases = [
        lambda e: moments(e, x),
        lambda e: moments(e, spoiled, drop_nonfinite=True),
        lambda e: by_folds(e, x, x[:, :3]),
        lambda e: sweep(e, x, np.float64),
        lambda e: sweep(e, x.astype(np.float32), np.float32),
    ]
    for case in cases:
        here, there = both_ways(engine, case)
        assert here == there
    in_tree = both_ways(engine, cases[0])
    monkeypatch.setattr(folds, "PARTIAL_BYTES", 1)
    in_order = both_ways(engine, cases[0])
    assert in_order[0] == in_order[1] != in_tree[0]


def test_dropped_rows_are_told(dask_client, x):
    x[[3, 700], 1] = np.inf
    _, kept = folds.row_moments(open_rows(x), drop_nonfinite=True, engine=Cluster(dask_client))
    np.testing.assert_array_equal(np.flatnonzero(~kept), [3, 700])


def keys(client):
    return {key for held in client.has_what().values() for key in held}


def assert_released(client, before):
    """Workers come to hold no more than before; what nobody refers to is released some time later."""
    deadline = time.monotonic() + 10
    while not keys(client) <= before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert keys(client) <= before


def test_of_several_errors_the_first_is_told(dask_client, x):
    x[[900, 6000], 2] = np.nan
    engine, before = Cluster(dask_client), keys(dask_client)
    with pytest.raises(InputError, match="row 900, column 2"):
        folds.row_moments(open_rows(x), engine=engine)
    engine._sent.clear()
    assert_released(dask_client, before)


class Counting(Cluster):
    """Notes what is sent."""

    def __init__(self, client):
        super().__init__(client)
        self.sent = []

    def _send(self, value):
        known = id(value) in self._sent
        found = super()._send(value)
        if not known and id(value) in self._sent:
            self.sent.append(type(value).__name__)
        return found


@pytest.fixture
def many_rows(monkeypatch):
    """Rows of any number are too many to be held whitened, so that every pass runs on the cluster."""
    monkeypatch.setattr("nearid.ica.fit.MOST_HELD", 0)


def test_rows_travel_once_and_nothing_is_left_behind(dask_client, x, many_rows):
    engine, rows, before = Counting(dask_client), open_rows(x), keys(dask_client)
    ticks: list[int] = []
    fit_ica(rows, engine=engine, tick=lambda: ticks.append(1))
    # A pass for the start and one for the diagnostics, beside those of the search.
    assert engine.sent == ["FoldPass", "MemoryRows", *["Task"] * (len(ticks) + 2)]
    assert list(engine._sent) == [id(rows)]
    del rows
    gc.collect()
    assert not engine._sent
    assert_released(dask_client, before)


def held(item):
    return [np.full(1000, float(item))]


def scaled(item, values):
    return [item * values]


def scaled_one(item, values):
    return item * values


def merged_in_place(into, part):
    into += part
    return into


def test_merging_in_place_leaves_the_parts_alone():
    first, second = [np.ones(3)], [np.ones(3)]
    assert room.merge_on_worker(merged_in_place, first, second)[0].tolist() == [2, 2, 2]
    assert first[0].tolist() == second[0].tolist() == [1, 1, 1]


def blas_threads():
    from threadpoolctl import threadpool_info

    return [info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"]


def test_tasks_run_with_one_blas_thread():
    from threadpoolctl import threadpool_limits

    with threadpool_limits(2, user_api="blas"):
        assert set(room.run_on_worker(lambda _: blas_threads(), None)) == {1}


def missing(item):
    raise FileNotFoundError(2, "No such file", "/data/x.npy")


def foreign(item):
    raise ModuleNotFoundError("No module named 'nearid'")


def broken(item):
    raise RuntimeError("my own")


@pytest.mark.parametrize(
    ("task", "kind", "words"),
    [(missing, EngineError, "same path"), (foreign, EngineError, "same versions"), (broken, RuntimeError, "my own")],
)
def test_errors_of_tasks_are_told_at_once(dask_client, task, kind, words):
    with pytest.raises(kind, match=words):
        Cluster(dask_client).reduce(task, [1, 2], merge=merged_in_place)


def test_a_file_that_workers_do_not_see_is_told(dask_client, x, tmp_path):
    np.save(tmp_path / "x.npy", x)
    rows = open_rows(tmp_path / "x.npy")
    (tmp_path / "x.npy").unlink()
    passes = RowPasses(rows, None, np.zeros(x.shape[1]), CONTRASTS["logcosh"], rows.dtype)
    with pytest.raises(ReadError, match=r"x\.npy could not be read: No such file"):
        passes.contrast_sums(np.eye(x.shape[1]))
    with pytest.raises(EngineError, match=r"cannot read the rows \(x.npy could not be read.*same path"):
        replace(passes, engine=Cluster(dask_client)).contrast_sums(np.eye(x.shape[1]))


def test_another_nearid_on_the_cluster_is_refused(dask_client, monkeypatch):
    monkeypatch.setattr(room, "__version__", "99.0")
    with pytest.raises(EngineError, match=r"has nearid \d\S* but this process has 99\.0\. Install nearid 99\.0"):
        Cluster(dask_client)


def test_a_pass_that_is_lost_again_and_again_is_given_up(dask_client, monkeypatch):
    engine, runs = Cluster(dask_client), []

    def lose(*_):
        runs.append(1)
        raise room.PassLost("no more")

    monkeypatch.setattr(engine, "_await", lose)
    with pytest.raises(EngineError, match="lost in 4 runs of the same pass"):
        engine.reduce(held, [1, 2], merge=merged_in_place)
    assert len(runs) == room.RUNS


@pytest.fixture
def sent_to_workers(monkeypatch):
    """Shared data of any size is sent to a worker, not kept by the scheduler."""
    monkeypatch.setattr(room, "SMALL", -1)


def test_no_worker_to_send_to_loses_the_run_alone(dask_client, monkeypatch, sent_to_workers):
    engine, scatter = Cluster(dask_client), dask_client.scatter
    answers = [TimeoutError("No valid workers found")]

    def late(*args, **options):
        if answers:
            raise answers.pop()
        return scatter(*args, **options)

    monkeypatch.setattr(dask_client, "scatter", late)
    [total] = engine.reduce(scaled, [1, 2], np.ones(3), merge=merged_in_place)
    assert total.tolist() == [3, 3, 3] and not answers


def test_sending_to_a_worker_that_does_not_answer_is_given_up_and_tried_again(
    dask_client, monkeypatch, sent_to_workers
):
    monkeypatch.setattr(room, "RETURN", 0.2)
    engine, scatter = Cluster(dask_client), dask_client.scatter
    silent = [Event()]

    def hang(*args, **options):
        if silent:
            silent.pop().wait(60)
        return scatter(*args, **options)

    monkeypatch.setattr(dask_client, "scatter", hang)
    [total] = engine.reduce(scaled, [1, 2], np.ones(3), merge=merged_in_place)
    assert total.tolist() == [3, 3, 3] and not silent
    assert [part.tolist() for part in engine.map(scaled_one, [1, 2], np.ones(2))] == [[1, 1], [2, 2]]


def test_a_worker_that_dies_while_data_is_sent_ends_the_wait_at_once(dask_client, monkeypatch, sent_to_workers):
    monkeypatch.setattr(room, "LOOK", 0.1)
    engine, scatter = Cluster(dask_client), dask_client.scatter
    silent, workers = Event(), [{"a", "b"}, {"b"}]
    given: list[float] = []

    def hang(*args, **options):
        if not given:
            given.append(time.monotonic())
            silent.wait(60)
        return scatter(*args, **options)

    monkeypatch.setattr(dask_client, "scatter", hang)
    monkeypatch.setattr(engine, "_workers", lambda: workers.pop(0) if workers else {"b"})
    [total] = engine.reduce(scaled, [1, 2], np.ones(3), merge=merged_in_place)
    assert total.tolist() == [3, 3, 3] and time.monotonic() - given[0] < 20
    silent.set()


def test_no_call_to_a_silent_scheduler_waits_for_ever(dask_client, monkeypatch):
    monkeypatch.setattr(room, "ANSWER", 0.3)
    monkeypatch.setattr(room, "RETURN", 0.3)
    monkeypatch.setattr(room, "LOOK", 0.1)
    engine, silent = Cluster(dask_client), Event()
    monkeypatch.setattr(dask_client, "wait_for_workers", lambda *_, **__: silent.wait(60))
    with pytest.raises(EngineError, match="no longer answers"):
        engine.reduce(held, [1, 2], merge=merged_in_place)
    monkeypatch.undo()
    monkeypatch.setattr(room, "ANSWER", 0.3)
    monkeypatch.setattr(dask_client, "nthreads", lambda *_, **__: silent.wait(60))
    with pytest.raises(EngineError, match="lost in 4 runs of the same pass"):
        list(engine.map(scaled_one, [1, 2], 3))
    silent.set()


def test_a_result_that_does_not_come_is_given_up_and_computed_again(dask_client, monkeypatch):
    from distributed import Future

    monkeypatch.setattr(room, "LOOK", 0.1)
    monkeypatch.setattr(room, "FETCH", 0.3)
    engine, silent, result = Cluster(dask_client), Event(), Future.result
    hangs = [1]

    def hang(self, timeout=None):
        if hangs:
            hangs.pop()
            silent.wait(60)
        return result(self, timeout)

    monkeypatch.setattr(Future, "result", hang)
    assert list(engine.map(scaled_one, [1, 2], 3)) == [3, 6] and not hangs
    silent.set()


def test_errors_that_nobody_waits_for_are_not_told_afterwards(dask_client, caplog):
    """A command wrote "Future exception was never retrieved" after its right answer, once in 30 deaths of a worker."""
    with Cluster(dask_client.scheduler_info()["address"]) as cluster:
        loop = cluster._client.loop.asyncio_loop
    assert loop is not dask_client.loop.asyncio_loop
    lost = loop.create_future()
    lost.set_exception(TimeoutError("Timeout"))
    del lost
    gc.collect()
    assert not [record for record in caplog.records if record.name == "asyncio"]
    # An error of another kind is not a lost connection.
    wrong = loop.create_future()
    wrong.set_exception(ValueError("a mistake"))
    del wrong
    gc.collect()
    assert ["a mistake" in str(record.exc_info) for record in caplog.records if record.name == "asyncio"] == [True]


def test_large_data_is_told_from_small():
    assert room.pickled_size(np.ones(3)) < 1000 < 8e6 < room.pickled_size(np.ones(10**6)) < 8.01e6


def test_no_workers_are_told(monkeypatch):
    from distributed import LocalCluster

    monkeypatch.setattr(room, "RETURN", 0.5)
    server = {"dashboard_address": "127.0.0.1:0"}
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=None, scheduler_kwargs=server) as empty,
        Cluster(empty.scheduler_address) as engine,
        pytest.raises(EngineError, match=f"no worker for 0.5 seconds.*dask worker {empty.scheduler_address}"),
    ):
        engine.reduce(held, [1], merge=merged_in_place)


def test_an_own_cluster_that_is_interrupted_while_it_starts_is_ended(monkeypatch):
    closed, interrupted, ended = [], Event(), room.Call.ended

    class Own:
        def close(self):
            closed.append(self)

    def make():
        interrupted.wait()
        return Own()

    def stopped(self, seconds):
        if not interrupted.is_set():
            interrupted.set()
            raise KeyboardInterrupt
        return ended(self, seconds)

    monkeypatch.setattr(room.Call, "ended", stopped)
    with pytest.raises(KeyboardInterrupt):
        room._start(make)
    assert len(closed) == 1


def test_workers_of_an_own_cluster_end_when_its_process_is_killed(tmp_path, rng):
    psutil = pytest.importorskip("psutil")
    np.save(tmp_path / "x.npy", rng.laplace(size=(50_000, 8)))
    words = ["unmix", "x.npy", "-o", "out", "--engine", "dask"]
    with (tmp_path / "errors").open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", "from nearid.cli.app import main; main()", *words], cwd=tmp_path, stderr=errors
        )
    started = []
    deadline = time.monotonic() + 60
    while len(started) < 2:  # the tracker of resources and a worker
        assert time.monotonic() < deadline and process.poll() is None, (tmp_path / "errors").read_text()
        time.sleep(0.05)
        started = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait()
    assert psutil.wait_procs(started, timeout=60)[1] == []


class Disturbed(Cluster):
    """Does harm in the midst of some passes, with most of their blocks still to do."""

    def __init__(self, address, harms):
        super().__init__(address)
        self._harms, self.passes, self.runs, self.harmed_at = harms, 0, 0, None

    def reduce(self, task, items, *shared, merge, large=False, tick=None):
        self.passes += 1
        blocks = 0

        def midway():
            nonlocal blocks
            blocks += 1
            if blocks == FAN_IN // 2 and self.passes in self._harms:
                self._harms[self.passes](self)
                self.harmed_at = time.monotonic()

        return super().reduce(task, items, *shared, merge=merge, large=large, tick=midway)

    def _run(self, *args):
        self.runs += 1
        return super()._run(*args)


def worker_pids(client):
    return list(client.run(os.getpid).values())


@pytest.mark.parametrize("kept", ["by the scheduler", "by workers"])
def test_killed_workers_cost_recomputation_only(processes, x, tmp_path, many_rows, kept, request):
    if kept == "by workers":
        request.getfixturevalue("sent_to_workers")
    np.save(tmp_path / "x.npy", x)
    killed = []

    def kill(engine, count):
        # With the last worker, what only workers hold is lost, and the pass runs again. The first harm may cost a run,
        # too: the worker that dies may be the only one that holds what was shared.
        assert engine.runs <= engine.passes + len(killed)
        engine._client.wait_for_workers(2, timeout=60)
        doomed = worker_pids(engine._client)[:count]
        for pid in doomed:
            os.kill(pid, signal.SIGKILL)
        killed.extend(doomed)

    with Disturbed(processes.address, {4: lambda e: kill(e, 1), 8: lambda e: kill(e, 2)}) as engine:
        found = fit_ica(open_rows(tmp_path / "x.npy"), IcaOptions(tol=1e-8), engine=engine)
        assert len(set(killed)) == 3 and not set(killed) & set(worker_pids(engine._client))
        assert engine.passes > 8 and (engine.runs > engine.passes) == (kept == "by workers")
    expected = fit_ica(open_rows(tmp_path / "x.npy"), IcaOptions(tol=1e-8))
    np.testing.assert_array_equal(found.components, expected.components)


@pytest.mark.timeout(120)
def test_a_killed_scheduler_is_told_promptly(processes, x, monkeypatch, many_rows):
    monkeypatch.setattr(room, "ANSWER", 3)
    with (
        Disturbed(processes.address, {4: lambda _: processes.scheduler.kill()}) as engine,
        pytest.raises(EngineError, match=r"scheduler at tcp://127.0.0.1:\d+ no longer answers.*checkpoint"),
    ):
        fit_ica(open_rows(x), IcaOptions(tol=1e-8), engine=engine)
    assert engine.harmed_at is not None and time.monotonic() - engine.harmed_at < 20


@pytest.mark.timeout(120)
def test_a_fit_goes_on_from_its_checkpoint_after_the_scheduler_died(processes, x, tmp_path, monkeypatch, many_rows):
    monkeypatch.setattr(room, "ANSWER", 3)
    np.save(tmp_path / "x.npy", x)
    rows, out = open_rows(tmp_path / "x.npy"), tmp_path / "out"
    passes = 0

    def stage(name, steps):
        def tick():
            nonlocal passes
            passes += 1
            if passes == 4:
                processes.scheduler.kill()

        return tick

    with pytest.raises(EngineError, match="no longer answers"):
        unmix(rows, out, tol=1e-8, engine=processes.address, progress=stage)
    assert [p.name for p in out.iterdir()] == ["checkpoint.safetensors"]
    stages = []
    found = unmix(rows, out, tol=1e-8, progress=lambda name, steps: stages.append(name) or (lambda: None))
    assert "Continuing after 4 passes" in stages[0]
    expected = ICA(tol=1e-8).fit(x)
    np.testing.assert_allclose(found.components_, expected.components_, atol=1e-6 * np.abs(expected.components_).max())


def test_independent_tasks_come_as_they_are_done(dask_client):
    import math

    from nearid.engines.base import Failure

    with Cluster(dask_client) as engine:
        came = dict(engine.each(math.sqrt, [4.0, -1.0, 9.0]))
    assert (came[0], came[2]) == (2.0, 3.0)
    assert isinstance(came[1], Failure) and came[1].error.startswith("ValueError") and "Traceback" in came[1].trace


def test_tasks_while_workers_and_the_scheduler_die(processes, monkeypatch):
    from nearid.engines.base import Failure

    monkeypatch.setattr(room, "LOOK", 0.2)
    monkeypatch.setattr(room, "ANSWER", 2)
    with Cluster(processes.address) as engine:
        engine._client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 0))
        # Dask suspects all that waits for a worker that dies; here the killer is found among them.
        came = dict(engine.each(signal.raise_signal, [0, signal.SIGKILL, 0, 0]))
        assert [came[k] for k in (0, 2, 3)] == [None, None, None]
        assert isinstance(came[1], Failure) and "The workers that ran it were lost" in came[1].error
        waiting = engine.each(time.sleep, [0.0, 60.0])
        assert next(waiting) == (0, None)
        os.killpg(processes.scheduler.pid, signal.SIGKILL)
        with pytest.raises(EngineError, match=r"no longer answers|has lost its tasks"):
            next(waiting)


def test_compare_gives_the_same_figures_on_dask(nearid, dask_client, tmp_path, rng):
    x = rng.normal(size=(600, 3))
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", x @ rng.normal(size=(3, 3)))
    address = dask_client.scheduler_info()["address"]
    here = nearid("compare", "x.npy", "y.npy", "--json")
    there = nearid("compare", "x.npy", "y.npy", "--json", "--engine", address)
    assert there.returncode == 0, there.stderr
    assert json.loads(there.stdout) == json.loads(here.stdout)
