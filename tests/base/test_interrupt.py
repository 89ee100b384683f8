"""Signals to stop: told, never lost, never taken for something else."""

import os
import signal
import sys
import time

import pytest

import nearid.base.interrupt as interrupt
from nearid.base.interrupt import Interrupted, catch_signals, ignore_signals, leaving


@pytest.fixture(autouse=True)
def handlers_of_before():
    before = {name: signal.getsignal(getattr(signal, name)) for name in interrupt.STOPPING}
    hook = sys.unraisablehook
    yield
    sys.unraisablehook = hook
    for name, handler in before.items():
        signal.signal(getattr(signal, name), handler)


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)])
def test_each_signal_has_its_exit_code(name, code):
    # Below nohup a hang-up is ignored, and stays so.
    signal.signal(getattr(signal, name), signal.SIG_DFL)
    catch_signals()
    with pytest.raises(Interrupted) as stop:
        signal.raise_signal(getattr(signal, name))
    assert stop.value.code == code and stop.value.left == "nothing was written"


def test_a_signal_that_comes_twice_is_one_and_a_later_one_ends_the_process(monkeypatch):
    left = []
    monkeypatch.setattr(interrupt, "leave", lambda message, code: left.append((message, code)))
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    catch_signals()
    with pytest.raises(Interrupted):
        signal.raise_signal(signal.SIGTERM)
    signal.raise_signal(signal.SIGTERM)
    assert left == []
    now[0] = 2.0
    signal.raise_signal(signal.SIGINT)
    [(message, code)] = left
    assert "stopped at once" in message and code == 130


def test_a_signal_that_python_drops_is_sent_again():
    class Deleted:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGINT)
            sum(range(1000))

    catch_signals()
    with pytest.raises(Interrupted):
        Deleted()
        time.sleep(5)


def test_other_errors_that_python_drops_are_shown(capsys):
    class Deleted:
        def __del__(self):
            raise ZeroDivisionError("dropped")

    catch_signals()
    Deleted()
    assert "ZeroDivisionError: dropped" in capsys.readouterr().err


def test_nohup_is_heeded_and_done_work_is_not_interrupted():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    catch_signals()
    signal.raise_signal(signal.SIGHUP)
    ignore_signals()
    signal.raise_signal(signal.SIGINT)
    signal.raise_signal(signal.SIGTERM)


def test_what_is_left_is_told():
    for left in ("a page", lambda: "a page"):
        with pytest.raises(Interrupted) as stop, leaving(left):
            raise Interrupted
        assert stop.value.left == "a page"
