"""The command itself: streams, signals and every way out."""

import io
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import nearid as package
import nearid.cli.app as cli
from nearid.base.interrupt import Interrupted


def test_help_and_version(process):
    assert "compare" in process("--help").stdout
    assert process("--version").stdout.strip() == f"nearid {package.__version__}"
    assert process("compare", "--help").returncode == 0


def test_an_unknown_command_is_an_error(process):
    done = process("compere")
    assert done.returncode == 2 and "Did you mean compare" in done.stderr


# Sends SIGINT to itself when a module is looked for.
AT = """
import importlib.abc, os, signal, sys
module = sys.argv[1]
class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == module:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
from nearid.cli.app import main
sys.argv = ["nearid", "compare", "a.npy", "b.npy"]
main()
"""


@pytest.mark.parametrize("module", ["typer", "numpy"])
def test_an_interrupt_amid_the_imports_is_told(tmp_path, module):
    done = subprocess.run([sys.executable, "-c", AT, module], capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.returncode == 130 and done.stderr == "nearid: interrupted; nothing was written.\n"


def test_the_entry_point_loads_nothing_slow():
    code = "import sys, nearid.cli.app; print([m for m in ('typer', 'rich', 'numpy') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


@pytest.fixture
def ending(monkeypatch, capsys):
    """Run `main` around something that raises; gives the exit code and what stands on stderr."""

    class Ended(BaseException):
        pass

    def run(error):
        def fail():
            raise error

        def end(code):
            raise Ended(code)

        for name in ("_open_streams", "catch_signals", "ignore_signals"):
            monkeypatch.setattr(cli, name, lambda: None)
        monkeypatch.setattr(cli, "_run", fail)
        monkeypatch.setattr("os._exit", end)
        with pytest.raises(Ended) as ended:
            cli.main()
        return ended.value.args[0], capsys.readouterr().err

    return run


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (package.InputError("Bad."), 2, "nearid: Bad.\n"),
        (package.InputError("No \x1b[2J."), 2, "nearid: No \N{REPLACEMENT CHARACTER}[2J.\n"),
        (MemoryError(), 2, "nearid: there is not enough memory. Use fewer rows or columns.\n"),
        (OSError(28, "No space left on device"), 1, "nearid: could not write the output: No space left on device.\n"),
        (OSError(24, "Too many open files", "a.npy"), 1, "nearid: could not use a.npy: Too many open files.\n"),
        (Interrupted(15), 143, "nearid: interrupted; nothing was written.\n"),
    ],
)
def test_every_way_out_is_one_sentence(ending, error, code, words):
    assert ending(error) == (code, words)


def test_a_stderr_that_nobody_reads_changes_no_exit_code(ending, monkeypatch):
    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Closed())
    assert ending(package.InputError("Bad."))[0] == 2


def test_closed_streams_and_names_that_cannot_be_printed(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="latin-1"))
    monkeypatch.setattr(sys, "stdin", None)
    monkeypatch.setattr(sys, "stderr", None)
    cli._open_streams()
    print("x\u2713", "\udcff")
    sys.stdout.flush()
    assert sys.stdout.buffer.getvalue() == b"x\\u2713 \\udcff\n"
    assert sys.stdin.read() == "" and sys.stderr.write("x") == 1
    sys.stdin.close(), sys.stderr.close()


@pytest.mark.skipif(sys.platform == "win32", reason="a shell that can close a stream is needed")
@pytest.mark.parametrize(("closed", "code"), [(">&-", 1), ("2>&-", 0), ("<&-", 0)])
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_result_that_nobody_can_get_is_no_success(tmp_path, rng, closed, code, options):
    np.save(tmp_path / "x.npy", rng.normal(size=(40, 2)))
    command = [sys.executable, "-c", "from nearid.cli.app import main; main()", "compare", "x.npy", "x.npy", *options]
    shell = ["sh", "-c", f'"$@" --report r.html {closed}', "sh", *command]
    ended = subprocess.run(shell, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert ended.returncode == code
    if code:
        assert ended.stderr == "nearid: could not write the output: stdout is closed.\n" and not ended.stdout
    else:
        assert "permutation" in ended.stdout
    # What is written to a file is whole either way, and not beside something that was meant for the stream.
    assert (tmp_path / "r.html").read_text().rstrip().endswith("</html>")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device")
@pytest.mark.parametrize("unread", ["2>&-", "2>/dev/full", "2>broken"])
@pytest.mark.parametrize(
    ("call", "code"),
    [
        (("compare", "x.npy", "x.npy", "--report", "r.html"), 0),
        (("unmix", "x.npy", "-o", "ica", "--json"), 0),
        (("data", "list"), 0),
        (("compare", "--help"), 0),
        (("compare", "no.npy", "x.npy"), 2),
        (("compare", "--no-such-option"), 2),
    ],
)
def test_messages_that_nobody_reads_change_neither_result_nor_exit_code(tmp_path, rng, call, code, unread):
    if call[0] == "data":
        pytest.importorskip("pooch")
    np.save(tmp_path / "x.npy", rng.normal(size=(40, 2)))
    ends = os.pipe()
    os.close(ends[0])
    shell = 'exec "$@"' if unread == "2>broken" else f'exec "$@" {unread}'
    ended = subprocess.run(
        ["sh", "-c", shell, "sh", sys.executable, "-c", "from nearid.cli.app import main; main()", *call],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=ends[1],
        timeout=120,
    )
    os.close(ends[1])
    assert ended.returncode == code and bool(ended.stdout) == (code == 0)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no full device")
@pytest.mark.parametrize(
    "call", [("compare", "x.npy", "x.npy"), ("compare", "x.npy", "x.npy", "--json"), ("data", "list")]
)
def test_a_full_stdout_is_an_error(tmp_path, rng, process, call):
    if call[0] == "data":
        pytest.importorskip("pooch")
    np.save(tmp_path / "x.npy", rng.normal(size=(40, 2)))
    with open("/dev/full", "w") as full:
        ended = process(*call, stdout=full)
    assert ended.returncode == 1 and "could not write the output: No space left on device" in ended.stderr


def test_a_place_that_takes_no_files_is_refused_before_the_work(tmp_path, nearid, monkeypatch):
    """As /proc, where even root, who may write everywhere, can write nothing."""

    def refuse(**where):
        raise FileNotFoundError(2, "No such file or directory")

    np.save(tmp_path / "x.npy", np.eye(9)[:, :2])
    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    for call in (("unmix", "x.npy", "-o", "ica"), ("compare", "x.npy", "x.npy", "--report", "r.html"), ("demo",)):
        done = nearid(*call)
        assert done.returncode == 2 and "cannot be written into the folder" in done.stderr and not done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["x.npy"]


def test_errors_and_warnings_of_libraries_send_nothing_to_the_terminal(monkeypatch, capsys):
    monkeypatch.setattr(sys, "excepthook", None)
    monkeypatch.setattr(warnings, "showwarning", None)
    cli._open_streams()
    sys.excepthook(KeyError, KeyError("a"), None)
    sys.excepthook(RuntimeError, RuntimeError("\x1b[2J"), None)
    warnings.showwarning("\x9b2J", UserWarning, "x.py", 3)
    shown = capsys.readouterr().err
    assert "KeyError: 'a'" in shown and "UserWarning" in shown and "\x1b" not in shown and "\x9b" not in shown
