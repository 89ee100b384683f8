"""The local engine: order, errors, laziness; and the engine that a name opens."""

import sys
import threading
import time
from contextlib import contextmanager
from types import ModuleType

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import nearid.engines.cluster as cluster
import nearid.engines.local as local
from nearid import Whitening, compare, r2, score, unmix
from nearid.arrays import open_rows
from nearid.base.errors import EngineError, InputError
from nearid.engines.base import ENGINES, register_engine
from nearid.engines.local import LOCAL, Local, blocks, one_blas_thread, open_engine, ordered_map
from nearid.folds import row_moments


@pytest.mark.parametrize("n", [1, 255, 256, 10_001])
def test_blocks_cover_every_row_once(n):
    cut = blocks(n, 5000)
    assert [i for a, b in cut for i in range(a, b)] == list(range(n))


@pytest.mark.parametrize(
    ("n", "width", "count"),
    [(10**6, 8, 8), (10**7, 8, 20), (9000, 384, 8), (2000, 20, 1), (1000, 10**6, 4)],
)
def test_blocks_are_enough_to_share_and_worth_it(n, width, count):
    assert len(blocks(n, width)) == count


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_come_in_order(workers):
    def slow_first(k: int) -> int:
        time.sleep(0.02 if k == 0 else 0)
        return k * k

    ticks: list[int] = []
    found = list(ordered_map(slow_first, range(20), workers=workers, tick=lambda: ticks.append(1)))
    assert found == [k * k for k in range(20)] and len(ticks) == 20


def test_the_first_error_in_order_is_raised():
    def fail(k: int) -> int:
        if k in (3, 4):
            raise ValueError(f"item {k}")
        return k

    with pytest.raises(ValueError, match="item 3"):
        list(ordered_map(fail, range(10), workers=3))


def test_no_more_than_a_few_items_run_ahead():
    started, lock = [], threading.Lock()

    def note(k: int) -> int:
        with lock:
            started.append(k)
        return k

    run = ordered_map(note, range(100), workers=2)
    next(run)
    time.sleep(0.05)
    assert len(started) <= 5
    run.close()


def test_no_items_give_nothing():
    assert list(ordered_map(lambda k: k, [])) == []


def test_blas_threads_come_back_when_passes_overlap():
    from threadpoolctl import threadpool_info

    def threads():
        return [i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"]

    before = threads()
    runs = [ordered_map(lambda k: k, range(20), workers=2) for _ in range(3)]
    for run in runs:
        next(run)
    assert set(threads()) == {1}
    for run in runs:
        list(run)
    assert threads() == before


def test_libraries_with_threads_are_looked_for_again_after_an_import(monkeypatch):
    import threadpoolctl

    looked, real = [], threadpoolctl.ThreadpoolController
    libraries = local._Libraries()
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        monkeypatch.setattr(threadpoolctl, "ThreadpoolController", lambda: looked.append(1) or real())
        for imported, times in ((False, 1), (False, 1), (True, 2), (False, 2)):
            if imported:
                monkeypatch.setitem(sys.modules, "a_module_with_blas", ModuleType("a_module_with_blas"))
            with libraries.limit("blas"):
                assert {i["num_threads"] for i in real().info() if i["user_api"] == "blas"} == {1}
            assert {i["num_threads"] for i in real().info() if i["user_api"] == "blas"} == {2}
            assert len(looked) == times


def powers(item, scale):
    """Numbers whose sum depends on the order of adding."""
    yield np.float64(scale * 1.1**item)
    yield np.float64(scale * 0.7**item)


def add(into, part):
    return into + part


def test_reducing_gives_the_same_bytes_whatever_the_threads(monkeypatch):
    found, ticks = [], []
    for cores in (1, 2, 5):
        monkeypatch.setattr(local, "cores", lambda cores=cores: cores)
        found.append(LOCAL.reduce(powers, range(100), 0.1, merge=add, tick=lambda: ticks.append(1)))
    assert len(ticks) == 300
    assert found[0] == found[1] == found[2]
    np.testing.assert_allclose(found[0], [sum(0.1 * b**k for k in range(100)) for b in (1.1, 0.7)])
    in_order = LOCAL.reduce(powers, range(100), 0.1, merge=add, large=True)
    assert in_order[0] == np.cumsum([0.1 * 1.1**k for k in range(100)])[-1] != found[0][0]


def test_blas_has_one_thread_unless_parts_are_large():
    from threadpoolctl import threadpool_info, threadpool_limits

    def seen(item):
        return [max(i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas")]

    with threadpool_limits(2, user_api="blas"):
        assert LOCAL.reduce(seen, [1], merge=max) == [1]
        assert LOCAL.reduce(seen, [1, 2], merge=max, large=True) == [2]


def test_of_large_parts_one_at_a_time_is_made():
    events = []

    def parts(item):
        for place in range(3):
            events.append(("made", item, place))
            yield item

    def merge(into, part):
        events.append(("merged", part))
        return into + part

    assert LOCAL.reduce(parts, [1, 2], merge=merge, large=True) == [3, 3, 3]
    second = [kind for kind, *_ in events[3:]]
    assert second == ["made", "merged"] * 3


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


class Counting(Local):
    """This process, which counts the passes."""

    passes = 0

    def reduce(self, *args, **kwargs):
        self.passes += 1
        return super().reduce(*args, **kwargs)


def test_a_registered_engine_works_wherever_an_engine_is_taken(rng, tmp_path, nearid):
    mine, opened = Counting(), []

    @contextmanager
    def opener(name):
        opened.append(name)
        yield mine
        opened.append("closed")

    register_engine("counting", opener)
    try:
        x = rng.laplace(size=(400, 3)) @ rng.normal(size=(3, 3))
        np.save(tmp_path / "x.npy", x)
        np.save(tmp_path / "y.npy", x @ rng.normal(size=(3, 3)))
        calls = {
            "compare": lambda engine: compare(x, x[:, ::-1], engine=engine),
            "score": lambda engine: score(x, x[:, :2], measures="r2", engine=engine),
            "unmix": lambda engine: unmix(x, engine=engine),
            "r2": lambda engine: r2(x, x[:, :2], engine=engine),
            "Whitening": lambda engine: Whitening(engine=engine).fit(x),
        }
        for name, call in calls.items():
            before = mine.passes
            call("counting:3")
            assert mine.passes > before and opened[-2:] == ["counting:3", "closed"], name
        done = nearid("compare", "x.npy", "y.npy", "--engine", "counting", "--json")
        assert done.returncode == 0 and opened[-2:] == ["counting", "closed"], done.stderr
        with pytest.raises(InputError, match='must be "local", "torch", "dask", "counting" or the address'):
            compare(x, x, engine="counted")
    finally:
        del ENGINES["counting"]
    with pytest.raises(InputError, match="not 'counting'"):
        compare(x, x, engine="counting")


def test_a_large_pass_in_several_blocks_has_the_threads_of_blas_back():
    """Also within what holds BLAS at one thread; afterwards it is held again."""

    def threads():
        return max(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")

    def task(item):
        yield threads()

    with threadpool_limits(2, user_api="blas"), one_blas_thread:
        assert threads() == 1
        assert LOCAL.reduce(task, [0, 1], merge=max, large=True) == [2]
        assert LOCAL.reduce(task, [0], merge=max, large=True) == [1]
        assert threads() == 1
