"""`nearid reproduce` as a user types it: list, table, JSON, failed cells, Ctrl-C; a sentence for bad input."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock
from urllib.parse import unquote

import pytest

# The command with two experiments of the tests alone, which need no torch.
TOYS = {"wanting": "toy_experiments:WANTING", "toy": "toy_experiments:TOY"}
COMMAND = f"""
from nearid.lab.framework.experiment import HOMES
HOMES.clear()
HOMES.update({TOYS!r})
from nearid.cli.app import main
main()
"""


@pytest.fixture
def start(tmp_path):
    """Start `nearid reproduce` with arguments in tmp_path."""

    def run(*args, columns=140, seconds=0.0):
        places = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(places), "COLUMNS": str(columns)}
        env["TOY_SECONDS"] = str(seconds)
        command = [sys.executable, "-c", COMMAND, "reproduce", *args]
        return subprocess.Popen(
            command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    return run


@pytest.fixture
def reproduce(nearid):
    """Run `nearid reproduce` to its end in this process; gives exit code, stdout and stderr."""

    def run(*args, **options):
        from nearid.lab.framework.experiment import HOMES

        with mock.patch.dict(HOMES, TOYS, clear=True):
            done = nearid("reproduce", *args, **options)
        return done.returncode, done.stdout, done.stderr

    return run


LISTED = """
import atexit, sys
atexit.register(lambda: print("torch" in sys.modules))
sys.argv = ["nearid", "reproduce"]
from nearid.cli.app import main
main()
"""


def test_the_list_fits_a_screen_and_loads_no_torch(tmp_path):
    env = {**os.environ, "COLUMNS": "80", "NEARID_DATA": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", LISTED], capture_output=True, text=True, timeout=120, env=env)
    *lines, torch = done.stdout.splitlines()
    assert done.returncode == 0 and torch == "False" and len(lines) <= 45 and max(map(len, lines)) <= 80
    # A name that is broken cannot be copied.
    from nearid.lab.framework.experiment import HOMES

    assert set(HOMES) <= {line.split()[0] for line in lines if line.split()}
    listed = {line.split()[0]: " ".join(line.split()[1:]) for line in lines if line.split()}
    assert listed["radial"].startswith("Fig. 2 6 min yes") and "needs mnist" in listed["mnist-autoencoders"]


def test_parameters_are_shown(nearid):
    done = nearid("reproduce", "radial", "--show", "--preset", "paper", "--set", "width=77")
    words = " ".join(done.stdout.split())
    assert done.returncode == 0 and "preset paper" in words and "Claims" in words
    for shown in ("classes 18", "width 77", "steps 10000", "units of each of the three hidden layers"):
        assert shown in words


def test_the_list_and_parameters_as_json(nearid, tmp_path):
    done = nearid("reproduce", "--json")
    told = json.loads(done.stdout)
    assert done.returncode == 0 and {"radial", "diet"} <= {e["experiment"] for e in told}
    assert all(isinstance(e["lacking"], list) for e in told)
    done = nearid("reproduce", "radial", "--show", "--json", "--set", "width=77")
    told = json.loads(done.stdout)
    assert told["parameters"]["width"]["value"] == 77 and [r["row"] for r in told["rows"]][:2] == [
        "published",
        "control",
    ]
    assert done.returncode == 0 and os.listdir(tmp_path) == []


def test_a_table_the_files_and_json(reproduce, tmp_path):
    code, out, err = reproduce("toy", "--seeds", "2", "--set", "steps=3", "-o", "res", columns=100)
    assert code == 0 and "✓ reproduced" in out and max(map(len, out.splitlines())) <= 100
    assert "preset cpu, 2 seeds; set: steps = 3 (preset: 5)" in out and "High is high." in out
    assert "Claims are judged with changed parameters: steps." in out
    place = tmp_path / "res" / "toy" / "seeds=2,steps=3"
    assert "begins" in err and "4 of 4 cells" in err
    assert "Result and report written to res/toy/seeds=2,steps=3\n" in err
    saved = json.loads((place / "result.json").read_text())
    assert saved["provenance"]["command"] == "nearid reproduce toy --seeds 2 --set steps=3 -o res"
    assert saved["provenance"]["parameters"]["steps"] == 3 and saved["provenance"]["seeds"] == 2
    assert "<svg" in (place / "report.html").read_text(encoding="utf-8")
    code, out, err = reproduce("all", "--seeds", "2", "--set", "steps=3", "-o", "res", "--json")
    assert code == 0 and "4 of 4 cells were finished before." in err
    assert [r["table"] for r in json.loads(out)] == [saved["table"]]


def test_all_ends_with_a_scoreboard_and_a_page_that_leads_to_the_reports(reproduce, tmp_path):
    code, out, err = reproduce("all", "--seeds", "2", "--set", "kind=a b", "-o", "res", columns=80)
    [index] = (tmp_path / "res").glob("index-*.html")
    assert index.name.startswith("index-seeds=2,kind=a_b-")
    assert code == 0 and err.endswith(f"Scoreboard with links to all reports written to res/{index.name}\n")
    board = " ".join(out[out.rindex("scoreboard") :].split())
    assert "4 claims: 2 reproduced, 1 not reproduced, 1 not testable here" in board
    assert "0.50 to 0.87" in board and "2/1/0/1" in board and max(map(len, out.splitlines())) <= 80
    page = index.read_text(encoding="utf-8")
    [link] = re.findall('<a href="([^"#]*report.html)">toy</a>', page)
    assert (tmp_path / "res" / unquote(link)).is_file() and "<svg" in page
    code, out, err = reproduce("all", "--preset", "smoke", "-o", "res")
    assert "No claim was judged." in out and "not judged" in out[out.rindex("scoreboard") :]
    # No scoreboard replaces that of another run.
    assert index.read_text(encoding="utf-8") == page and (tmp_path / "res" / "index-smoke.html").is_file()


def test_a_page_that_nearid_did_not_write_is_kept_and_reported_before_the_run(reproduce, tmp_path):
    index = tmp_path / "index.html"
    index.write_text("<title>The papers</title> that I read", encoding="utf-8")
    code, out, err = reproduce("all", "-o", ".")
    assert code == 2 and out == "" and err.startswith("nearid: index.html is not a scoreboard that nearid wrote")
    assert sorted(os.listdir(tmp_path)) == ["index.html"] and "that I read" in index.read_text(encoding="utf-8")
    # One that nearid wrote is replaced.
    index.unlink()
    assert [reproduce("all", "-o", ".")[0] for _ in range(2)] == [0, 0]
    index.unlink()
    index.mkdir()
    code, out, err = reproduce("all", "-o", ".")
    assert code == 2 and out == "" and "is a folder" in err


def test_the_json_is_printed_even_if_the_scoreboard_fails(reproduce):
    with mock.patch("nearid.lab.framework.scoreboard.view_of_results", side_effect=OSError("the disk is full")):
        code, out, _ = reproduce("all", "--preset", "smoke", "-o", "res", "--json")
    assert code != 0 and [r["experiment"] for r in json.loads(out)] == ["toy"]


def test_what_lacks_its_data_set_is_refused_alone_and_left_out_of_all(reproduce, tmp_path, monkeypatch):
    monkeypatch.setenv("NEARID_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    lacking = "The experiment wanting needs 3DIdent, which is not here: get it from https://zenodo.org/"
    code, out, err = reproduce("wanting", "--preset", "smoke")
    assert code == 2 and out == "" and err.startswith(f"nearid: {lacking}")
    assert err.endswith("with: nearid data fetch 3dident\n") and err.count("\n") == 1
    code, out, err = reproduce("all", "--preset", "smoke", "--json")
    assert code == 0 and [r["experiment"] for r in json.loads(out)] == ["toy"]
    # Told before the first begins.
    assert err.startswith(f"nearid: wanting is skipped. {lacking}") and "4 of 4 cells" in err
    assert sorted(os.listdir(tmp_path / "nearid-results")) == ["index-smoke.html", "toy"]


def test_failed_cells_have_an_exit_code(reproduce, tmp_path):
    code, out, err = reproduce("toy", "--seeds", "2", "--set", "wrong=1", "--json")
    told = json.loads(out)
    assert code == 3 and len(told["cells"]) == len(told["failures"]) == 2
    assert "high, seed 1: failed: ValueError" in err and "Traceback" not in err
    assert "2 cells failed. Run the same command again to retry only these cells." in err
    assert told == json.loads((tmp_path / "nearid-results" / "toy" / "seeds=2,wrong=1" / "result.json").read_text())
    code, out, err = reproduce("toy", "--seeds", "2", "--set", "wrong=1", "--row", "high")
    assert code == 3 and "1 cell failed. Run the same command again to retry only it." in err
    assert "Needs the row low, which was not run." in " ".join(out.split())


def test_ctrl_c_keeps_finished_cells_and_the_same_command_goes_on(start, reproduce, tmp_path):
    args = ("toy", "--seeds", "3")
    cells = tmp_path / "nearid-results" / "toy" / "cells"
    process = start(*args, seconds=0.1)
    deadline = time.monotonic() + 60
    while not list(cells.glob("*.json")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and out == "" and "Traceback" not in err
    assert "kept in nearid-results/toy; run the same command again to go on" in err
    kept = len(list(cells.glob("*.json")))
    assert 0 < kept < 6
    code, out, err = reproduce(*args)
    assert code == 0 and f"{kept} of 6 cells were finished before." in err and f"{6 - kept} of {6 - kept} cells" in err


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["radical"], "There is no experiment named 'radical'. Did you mean radial?"),
        (["radial", "--preset", "cpus"], "Did you mean cpu?"),
        (["radial", "--set", "step=3"], "Did you mean steps"),
        (["radial", "--set", "steps"], "--set takes key=value"),
        (["radial", "--set", "steps=many"], "The parameter steps must be a whole number (default: 4000)"),
        (["radial", "--set", "classes=1"], "must be at least 2, not 1"),
        (["radial", "--row", "controls"], "Did you mean control"),
        (["diet", "--set", "normalise=true"], "The parameter normalise of diet cannot be set: every row"),
        (["radial", "--seeds", "0"], "Invalid value for '--seeds'"),
        (["all", "--set", "nothing=1"], "no parameter of radial named 'nothing'"),
        (["radial", "--engine", "dusk"], "The engine must be"),
        (["radial", "-o", "note.txt"], "note.txt is a file"),
        (["radial", "--reuse", "note.txt"], "note.txt is not the result.json of an experiment"),
        (["radial", "--reuse", "nothing.json"], "There is no file nothing.json. --reuse takes the result.json"),
        (["radial", "--reuse", "."], ". is not a regular file. --reuse takes the result.json"),
        (["--seeds", "3"], "Name an experiment, or all"),
        (["--show"], "Name an experiment, or all"),
        (["all", "--reuse", "note.txt"], "--reuse takes cells from the result of one experiment"),
    ],
)
def test_bad_input_gets_a_sentence(refused, tmp_path, args, words):
    (tmp_path / "note.txt").write_text("mine")
    assert words in refused("reproduce", *args)
    assert os.listdir(tmp_path) == ["note.txt"]
