"""Tasks in processes: results as they come, failures and deaths one by one, nobody left behind."""

import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from die_with_parent import die_with_parent
from nearid.engines.base import Failure
from nearid.engines.local import LOCAL
from nearid.engines.processes import in_processes, no_working_folder


def run(task, items, workers=1):
    """Results in the order of the items; each must come exactly once."""
    came = list(in_processes(task, items, workers))
    assert sorted(place for place, _ in came) == list(range(len(items)))
    return [result for _, result in sorted(came, key=lambda pair: pair[0])]


def test_results_and_an_error_among_them():
    first, wrong, last = run(math.sqrt, [4.0, -1.0, 9.0])
    assert (first, last) == (2.0, 3.0)
    assert isinstance(wrong, Failure) and wrong.error.startswith("ValueError: ") and "Traceback" in wrong.trace


def test_a_process_that_dies_costs_its_task_alone():
    dead, ignored = run(signal.raise_signal, [signal.SIGKILL, signal.SIGINT])
    assert dead.error == "Its process ended without a result: exit code -9 (killed, perhaps because memory ran out)."
    # Ctrl-C is for the parent.
    assert ignored is None
    assert run(os._exit, [7])[0].error == "Its process ended without a result: exit code 7."


def test_what_does_not_travel_is_told():
    assert "cannot pickle" in run(memoryview, [b"x"])[0].error

    def here(item):
        return item

    here.__module__, here.__qualname__ = "toys_of_nobody", "here"
    sys.modules["toys_of_nobody"] = type(sys)("toys_of_nobody")
    sys.modules["toys_of_nobody"].here = here
    try:
        assert "No module named 'toys_of_nobody'" in run(here, [1])[0].error
    finally:
        del sys.modules["toys_of_nobody"]


def test_one_thread_and_nothing_on_stdout(capfd):
    assert run(os.getenv, ["OMP_NUM_THREADS"]) == ["1"]
    run(print, ["a word"])
    out, err = capfd.readouterr()
    assert out == "" and "a word" in err


def test_two_work_at_once_and_beginnings_are_told():
    begun = []
    came = LOCAL.each(time.sleep, [0.01, 0.0, 0.0], begun.append)
    assert sorted(place for place, _ in came) == [0, 1, 2] and sorted(begun) == [0, 1, 2]
    assert list(LOCAL.each(math.sqrt, [])) == []


def ended(pid):
    """Whether a process is gone, or a corpse that its new parent has not buried."""
    try:
        # The state comes after the name in brackets. (cmdline would be empty during exec too.)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


SLEEP = """
import multiprocessing, time
from nearid.engines.processes import in_processes, no_working_folder
tell = lambda place: print(multiprocessing.active_children()[0].pid, flush=True)
next(in_processes(time.sleep, [60], 1, tell))
"""


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at processes in /proc")
def test_a_killed_parent_leaves_nobody():
    with subprocess.Popen([sys.executable, "-c", SLEEP], stdout=subprocess.PIPE, text=True) as parent:
        child = int(parent.stdout.readline())
        assert not ended(child)
        parent.kill()
    deadline = time.monotonic() + 30
    while not ended(child):
        assert time.monotonic() < deadline, "the child goes on"
        time.sleep(0.05)


def test_leaving_early_ends_the_processes():
    import multiprocessing

    came = in_processes(time.sleep, [0.0, 60.0], 2)
    assert next(came) == (0, None)
    came.close()
    assert multiprocessing.active_children() == []


def test_files_of_the_working_folder_are_not_taken_for_modules(tmp_path, monkeypatch):
    for name in ("signal", "random", "socket", "nearid"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w').close()\nraise ImportError\n")
    monkeypatch.chdir(tmp_path)
    assert run(math.sqrt, [4.0]) == [2.0]
    assert not (tmp_path / "ran").exists() and "PYTHONSAFEPATH" not in os.environ
    monkeypatch.setenv("PYTHONSAFEPATH", "x")
    with no_working_folder():
        assert os.environ["PYTHONSAFEPATH"] == "1"
    assert os.environ["PYTHONSAFEPATH"] == "x"


def test_a_script_without_a_guard_is_not_run_again_in_the_processes(tmp_path):
    """Python imports the main module in every process that it spawns."""
    script = tmp_path / "script.py"
    script.write_text(
        "from math import factorial\n"
        "from nearid.engines.processes import in_processes\n"
        "print('top')\n"
        "print(sorted(in_processes(factorial, [3, 4], 2)))\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == ["top", "[(0, 6), (1, 24)]"], done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has ended")
def test_servers_of_the_tests_end_with_the_tests():
    start = (
        "import subprocess, sys, time; from die_with_parent import die_with_parent; "
        "sleeping = [sys.executable, '-c', 'import time; time.sleep(600)']; "
        "print(subprocess.Popen(sleeping, start_new_session=True, preexec_fn=die_with_parent).pid, flush=True); "
        "time.sleep(600)"
    )
    here = os.path.dirname(die_with_parent.__code__.co_filename)
    words, env = [sys.executable, "-c", start], {**os.environ, "PYTHONPATH": here}
    with subprocess.Popen(words, env=env, stdout=subprocess.PIPE, text=True) as tests:
        server = int(tests.stdout.readline())
        os.kill(server, 0)
        tests.kill()
    deadline = time.monotonic() + 20
    # What has ended may stay in the list of processes until its new parent looks.
    while os.path.exists(f"/proc/{server}") and " Z " not in Path(f"/proc/{server}/stat").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)
