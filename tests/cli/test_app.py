"""The command itself: streams, signals and every way out."""

import io
import subprocess
import sys

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
