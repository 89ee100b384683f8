"""`benchmarks/run_all.py`: one that hangs is stopped, finished ones are kept, and the page is written."""

import importlib.util
import json
import sys
import time
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
ENDS = "from measure import row\nrow('a sum', ours=1.0, peer=3.0, by='a loop', limit=0.5)\n"
HANGS = "import subprocess, sys, time\nfrom measure import row\nrow('the first half', ours=2.0)\n"
HANGS += "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
HANGS += "open('child', 'w').write(str(child.pid))\ntime.sleep(600)\n"


@pytest.fixture
def run_all(tmp_path, monkeypatch):
    """The script, with two benchmarks of its own in a folder of its own: one ends, one hangs."""
    for name in ("run_all.py", "measure.py"):
        (tmp_path / name).write_text((BENCHMARKS / name).read_text())
    (tmp_path / "bench_ends.py").write_text(ENDS)
    (tmp_path / "bench_hangs.py").write_text(HANGS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "measure", raising=False)
    spec = importlib.util.spec_from_file_location("run_all", tmp_path / "run_all.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    own = script.Benchmark
    benchmarks = {
        "ends": own("bench_ends", "", "", 60),
        "hangs": own("bench_hangs", "", None, 6),
        "lacks": own("bench_ends", "", "", 60, data="no-such-data"),
    }
    monkeypatch.setattr(script, "BENCHMARKS", benchmarks)
    (tmp_path / "page.md").write_text(f"# Before\n\n{script.BEGIN}\n\nold\n\n{script.END}\n\nafter\n")

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["run_all.py", "--keep", "kept", "--out", "page.md", *words])
        script.main()
        return Path("page.md").read_text()

    yield run
    sys.modules.pop("measure", None)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def test_one_that_hangs_does_not_spoil_the_page(run_all, capsys):
    page = run_all("--only", "ends,hangs,lacks")
    assert "| a sum | 1 s | 3 s (a loop) | 0.5 s | 3.0 (2.0 of the limit) |" in page
    assert "| the first half | 2 s |  |  |  |" in page
    assert "- `hangs`: stopped after 6 seconds" in page and "- `lacks`: needs no-such-data below NEARID_DATA" in page
    assert page.startswith("# Before\n") and page.endswith("after\n") and "old" not in page
    child = int(Path("child").read_text())
    until = time.monotonic() + 10
    while alive(child) and time.monotonic() < until:
        time.sleep(0.05)
    assert not alive(child)


def test_what_is_finished_is_not_run_again(run_all, capsys):
    run_all("--only", "ends")
    assert "| a sum |" in run_all("--only", "ends") and "ends: kept" in capsys.readouterr().err
    kept = json.loads(Path("kept/full/ends.json").read_text())
    assert kept["rows"][0]["what"] == "a sum" and kept["reason"] == ""
    # Other code is measured again.
    Path("bench_ends.py").write_text(ENDS.replace("ours=1.0", "ours=1.5"))
    assert "| a sum | 1.5 s |" in run_all("--only", "ends")
    assert "ends: done" in capsys.readouterr().err


def test_a_script_that_fails_is_listed_with_its_last_line(run_all):
    Path("bench_ends.py").write_text("raise ValueError('no such peer')\n")
    assert "- `ends`: failed: ValueError: no such peer" in run_all("--only", "ends")


def test_the_limits_of_a_full_run_add_up_to_half_an_hour():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        spec = importlib.util.spec_from_file_location("run_all_itself", BENCHMARKS / "run_all.py")
        script = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(script)
    finally:
        sys.path.remove(str(BENCHMARKS))
        sys.modules.pop("measure", None)
    assert sum(each.seconds for each in script.BENCHMARKS.values()) <= 1800
    assert {each.script for each in script.BENCHMARKS.values()} == {path.stem for path in BENCHMARKS.glob("bench_*.py")}
