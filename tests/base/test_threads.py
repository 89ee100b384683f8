"""Work over threads: every item once, in parts, and errors come through."""

import threading

import pytest

from nearid.base.threads import share_out


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("size", [1, 4, 11])
def test_every_item_is_worked_on_once(threads, size):
    done = [0] * size

    def work(part):
        for i in range(part.start, part.stop):
            done[i] += 1

    share_out(threads, size, work)
    assert done == [1] * size


def test_the_threads_run_at_the_same_time():
    barrier = threading.Barrier(2, timeout=20)
    share_out(2, 2, lambda part: barrier.wait())
    assert not barrier.broken


def test_errors_of_the_work_come_through():
    def fail(part):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        share_out(2, 4, fail)
