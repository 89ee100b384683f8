"""The local engine: order, errors, laziness."""

import threading
import time

import pytest

from nearid.engines.local import blocks, ordered_map


@pytest.mark.parametrize("n", [1, 255, 256, 10_001])
def test_blocks_cover_every_row_once(n):
    cut = blocks(n, 5000)
    assert [i for a, b in cut for i in range(a, b)] == list(range(n))


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
