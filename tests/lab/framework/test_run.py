"""Runs: resumed without loss, never from stale cells, the same on every engine, failures one by one."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from canonical_files import write_mnist
from nearid import __version__
from nearid.base.errors import InputError
from nearid.engines.local import LOCAL
from nearid.engines.processes import attempt
from nearid.lab.framework.run import LONGEST, check_machine, details, make_store, plan, reproduce, resume_hint, run
from nearid.lab.framework.settings import parameter
from toy_experiments import TOY
from toy_results import Inline

ALL = ["0.5 0", "0.5 1", "0.9 0", "0.9 1"]


def told(folder):
    """The only saved result of a folder, without what differs between runs."""
    [file] = folder.rglob("result.json")
    found = json.loads(file.read_text())
    del found["provenance"]
    for cell in found["cells"]:
        del cell["seconds"], cell["core_seconds"]
    return found


def test_a_second_run_computes_nothing_and_says_the_same(toy, tmp_path, inline):
    experiment, ran = toy
    said = []
    asked = plan(experiment, tmp_path / "out", preset="smoke")
    [first] = run([asked], command="nearid reproduce toy", say=said.append)
    assert ran() == ALL and sum("begins" in s for s in said) == 4 and "(4 of 4 cells)" in said[-2]
    place = tmp_path / "out" / "smoke"
    assert said[-1] == f"Result and report written to {place}"
    assert sorted(os.listdir(tmp_path / "out")) == ["cells", "smoke"]
    assert sorted(os.listdir(place)) == ["report.html", "result.json"]
    assert all(name.endswith(".json") for name in os.listdir(tmp_path / "out" / "cells"))
    provenance = json.loads((place / "result.json").read_text())["provenance"]
    assert provenance["command"] == "nearid reproduce toy" and provenance["parameters"]["steps"] == 2
    assert len(provenance["machines"]) == 1
    # As if killed between keeping a cell and clearing up after it.
    left = next((tmp_path / "out" / "cells").glob("*.json")).with_suffix(".work")
    left.mkdir()
    [again] = run([asked], say=said.append)
    assert ran() == [] and said[-2] == "4 of 4 cells were finished before." and not left.exists()
    assert again.cells == first.cells


def test_the_record_names_the_engine_and_the_options(toy, tmp_path):
    result = reproduce(
        toy[0], tmp_path / "out", preset="smoke", rows=["low"], parameters={"noise": 0.5}, engine=Inline()
    )
    [file] = (tmp_path / "out").rglob("result.json")
    for made in (result.provenance, json.loads(file.read_text())["provenance"]):
        assert made["engine"] == "Inline" and made["preset"] == "smoke" and made["nearid"] == __version__
        assert made["options"] == {
            "name": "toy", "preset": "smoke", "seeds": 2, "rows": ["low"], "parameters": made["options"]["parameters"]
        }  # fmt: skip
        assert made["options"]["parameters"]["noise"] == 0.5 and "steps" not in made["options"]["parameters"]


def test_a_pipe_in_the_place_of_a_cell_is_told_before_the_work(toy, tmp_path, inline):
    experiment, ran = toy
    asked = plan(experiment, tmp_path / "out", preset="smoke")
    list(run([asked]))
    ran()
    finished, other = sorted((tmp_path / "out" / "cells").glob("*.json"))[:2]
    finished.unlink()
    other.unlink()
    os.mkfifo(finished)
    with pytest.raises(InputError, match="not a regular file"):
        list(run([asked]))
    assert ran() == []


def test_stale_cells_are_not_taken_up_and_others_stay(toy, tmp_path, inline):
    experiment, ran = toy
    run = lambda e, **changes: reproduce(e, tmp_path / "out", preset="smoke", parameters=changes)  # noqa: E731
    first = run(experiment)
    ran()
    other = run(experiment, noise="0.02")
    assert ran() == ALL and other.estimate("low", "score") != first.estimate("low", "score")
    run(replace(experiment, version=2))
    assert ran() == ALL
    # Only the row that it concerns is run again.
    run(experiment, level="0.6")
    assert ran() == ["0.6 0", "0.6 1"]
    assert run(experiment).cells == first.cells and ran() == []
    # All of them still have their results.
    places = sorted(file.parent.name for file in (tmp_path / "out").rglob("result.json"))
    assert places == ["smoke", "smoke,level=0.6", "smoke,noise=0.02"]


def test_the_whole_usual_table_is_not_replaced(toy, tmp_path, inline):
    experiment, _ = toy
    out = tmp_path / "out"
    reproduce(experiment, out)
    whole = told(out)
    before = (out / "result.json").read_bytes()
    for options in ({"rows": ["high"]}, {"seeds": 2}, {"preset": "smoke"}, {"parameters": {"noise": 0.5}}):
        reproduce(experiment, out, **options)
    assert (out / "result.json").read_bytes() == before
    assert {f.name for f in out.iterdir() if f.is_dir()} == {"cells", "row=high", "seeds=2", "smoke", "noise=0.5"}
    changed = json.loads((out / "noise=0.5" / "result.json").read_text())
    assert changed["provenance"]["variant"] == "noise=0.5" and changed["table"] != whole["table"]


def test_several_experiments_share_processes(toy, tmp_path):
    experiment, ran = toy
    other = replace(experiment, name="other")
    # A cell that kills its process costs no other its result.
    plans = [
        plan(experiment, tmp_path / "toy", preset="smoke", parameters={"deadly": 1}),
        plan(other, tmp_path / "other", preset="smoke", rows=["low"]),
    ]
    said = []
    found = {result.experiment.name: result for result in run(plans, say=said.append)}
    assert len(ran()) == 6 and sum("of 6 cells" in s for s in said) == 6
    assert [len(found[name].cells) for name in ("toy", "other")] == [2, 2] and len(found["toy"].failures) == 2
    assert "other: low" in " ".join(said) and found["other"].provenance["seconds"] < 60
    assert told(tmp_path / "other")["experiment"] == "other" and told(tmp_path / "toy")["experiment"] == "toy"
    # Of what is finished, results are given without any process.
    again = list(run(plans[1:], say=said.append))
    assert again[0].cells == found["other"].cells and ran() == []


def test_a_cell_that_goes_on_tells_its_step(toy, tmp_path, inline):
    experiment, _ = toy
    asked = plan(experiment, tmp_path / "out", preset="smoke", rows=["high"])
    first, second = (make_store(asked.folder).work(cell) for cell in asked.cells)
    for work, step in ((first / "inner", 30), (second, 7)):
        work.mkdir(parents=True)
        (work / "log.jsonl").write_text(f'{{"step": 1}}\n{{"step": {step}}}\n')
    # Without a checkpoint a training begins anew.
    (first / "inner" / "checkpoint.pt").touch()
    said = []
    list(run([asked], say=said.append))
    assert "high, seed 0: goes on, having come to step 30 before" in said and "high, seed 1: begins" in said


def test_notes_on_what_rows_do_not_heed(toy, tmp_path, inline):
    said = []
    list(run([plan(toy[0], tmp_path / "out", preset="smoke", parameters={"level": "0.7"})], say=said.append))
    assert said[0] == "The row high sets level itself: level=0.7 changes only the other rows."
    with pytest.raises(InputError, match="The parameter level of toy cannot be set: every row that is run sets it"):
        reproduce(toy[0], tmp_path / "out", preset="smoke", rows=["high"], parameters={"level": "0.7"})


def test_time_left_does_not_count_the_start_of_processes(toy, tmp_path, monkeypatch):
    clock = [5000.0]

    class Slow:
        """Takes 1000 seconds to start, and 20 for each cell."""

        def each(self, task, items, begun):
            clock[0] += 1000
            for k, item in enumerate(items):
                clock[0] += 20
                yield k, attempt(task, item) | {"seconds": 20.0}

    monkeypatch.setattr("nearid.lab.framework.run.open_engine", lambda engine: nullcontext(Slow()))
    monkeypatch.setattr("nearid.lab.framework.run.time", SimpleNamespace(time=lambda: clock[0]))
    said = []
    [found] = run([plan(toy[0], tmp_path / "out", preset="smoke")], say=said.append)
    assert "(1 of 4 cells, about 60 s left)" in said[0] and "(3 of 4 cells, about 20 s left)" in said[2]
    assert found.provenance["seconds"] == 80


def test_some_rows_alone(toy, tmp_path, inline):
    experiment, ran = toy
    found = reproduce(experiment, tmp_path / "out", preset="smoke", rows=["high"])
    assert ran() == ["0.9 0", "0.9 1"] and [row.key for row in found.rows] == ["high"]
    assert [row["row"] for row in told(tmp_path / "out")["table"]] == ["high"]
    # The others are added to what is there.
    reproduce(experiment, tmp_path / "out", preset="smoke")
    assert ran() == ["0.5 0", "0.5 1"]


def test_a_damaged_cell_is_run_again(toy, tmp_path, inline):
    experiment, ran = toy
    reproduce(experiment, tmp_path / "out", preset="smoke")
    before = told(tmp_path / "out")
    ran()
    [cell] = (tmp_path / "out" / "cells").glob("high-seed1-*.json")
    cell.write_text(cell.read_text()[:50])
    said = []
    list(run([plan(experiment, tmp_path / "out", preset="smoke")], say=said.append))
    assert ran() == ["0.9 1"] and told(tmp_path / "out") == before
    assert said[0] == f"{cell.name} is damaged or not a cell of this run. The cell runs again."


@pytest.mark.parametrize("data", ["{}", '{"scores": {"score": "high"}}', '{"scores": {"score": 1}, "curves": [1]}'])
def test_a_cell_that_has_lost_its_scores_is_run_again(toy, tmp_path, inline, data):
    experiment, ran = toy
    reproduce(experiment, tmp_path / "out", preset="smoke")
    before = told(tmp_path / "out")
    ran()
    [cell] = (tmp_path / "out" / "cells").glob("high-seed1-*.json")
    cell.write_text(json.dumps(json.loads(cell.read_text()) | {"data": json.loads(data)}))
    reproduce(experiment, tmp_path / "out", preset="smoke")
    assert ran() == ["0.9 1"] and told(tmp_path / "out") == before


@pytest.mark.parametrize(
    "put",
    [Path.mkdir, os.mkfifo, lambda p: p.symlink_to("nowhere"), lambda p: p.symlink_to(p)],
    ids=["folder", "pipe", "broken link", "link to itself"],
)
def test_what_is_no_file_in_the_place_of_a_cell_is_named_before_the_work(toy, tmp_path, inline, put):
    experiment, ran = toy
    reproduce(experiment, tmp_path / "out", preset="smoke")
    ran()
    [cell] = (tmp_path / "out" / "cells").glob("high-seed1-*.json")
    cell.unlink()
    put(cell)
    with pytest.raises(InputError, match=f"{cell.name} is not a regular file.* Remove it"):
        reproduce(experiment, tmp_path / "out", preset="smoke")
    assert ran() == []


def test_cells_that_fail_or_die_do_not_lose_the_others(toy, tmp_path):
    experiment, ran = toy
    said = []
    [found] = run([plan(experiment, tmp_path / "out", parameters={"wrong": 1, "deadly": 2})], say=said.append)
    assert [(f.cell.row.key, f.cell.seed) for f in found.cells] == [("low", 0), ("high", 0)]
    errors = {(f.cell.row.key, f.cell.seed): f.failure.error for f in found.failures}
    assert sorted(errors) == [("high", 1), ("high", 2), ("low", 1), ("low", 2)]
    assert errors["low", 1].startswith("ValueError: seed 1 is") and "exit code -9" in errors["high", 2]
    assert sum("failed: ValueError" in s for s in said) == 2
    saved = json.loads((tmp_path / "out" / "wrong=1,deadly=2" / "result.json").read_text())
    assert len(saved["failures"]) == 4 and any("line" in f["trace"] for f in saved["failures"])
    assert {c["status"] for c in saved["claims"]} == {"not testable here"}
    ran()
    # The same again tries only what failed.
    reproduce(experiment, tmp_path / "out", parameters={"wrong": 1, "deadly": 2})
    assert ran() == ["0.5 1", "0.5 2", "0.9 1", "0.9 2"]


@pytest.mark.own_seeds
def test_dask_gives_the_same(toy, tmp_path, dask_client):
    experiment, _ = toy
    reproduce(experiment, tmp_path / "local", preset="smoke", parameters={"wrong": 1})
    reproduce(
        experiment, tmp_path / "dask", preset="smoke", parameters={"wrong": 1}, engine=dask_client.scheduler.address
    )
    local, dask = told(tmp_path / "local"), told(tmp_path / "dask")
    errors = [sorted((f["row"], f["seed"], f["error"]) for f in result.pop("failures")) for result in (local, dask)]
    assert local == dask and errors[0] == errors[1] and len(errors[0]) == 2


KILLED = """
import sys
from pathlib import Path
from toy_experiments import TOY
from nearid.lab.framework.run import reproduce
if __name__ == "__main__":
    reproduce(TOY, Path(sys.argv[1]), preset="smoke", parameters={"steps": 20})
"""


def half_done(cells):
    """Whether a cell is finished and another in its midst."""
    return list(cells.glob("*.json")) and any(
        not work.parent.with_suffix(".json").exists() for work in cells.glob("*.work/values")
    )


@pytest.mark.own_seeds
def test_killed_and_resumed_equals_undisturbed(tmp_path, inline):
    script, out = tmp_path / "script.py", tmp_path / "out"
    script.write_text(KILLED)
    places = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(places), "TOY_SECONDS": "0.1"}
    with subprocess.Popen([sys.executable, script, out], env=env) as process:
        deadline = time.monotonic() + 60
        while not half_done(out / "cells"):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    kept = len(list(out.glob("cells/*.json")))
    assert 0 < kept < 4 and not list(out.rglob("result.json"))
    assert resume_hint(out).startswith(f"{kept} finished cell") and "run the same command again" in resume_hint(out)
    resumed = reproduce(TOY, out, preset="smoke", parameters={"steps": 20})
    assert any(f.data["views"]["went_on_after"] > 0 for f in resumed.cells)
    reproduce(TOY, tmp_path / "undisturbed", preset="smoke", parameters={"steps": 20})
    assert told(out) == told(tmp_path / "undisturbed")
    assert not list(out.glob("cells/*.work"))


@pytest.mark.parametrize(
    ("folder", "options", "words"),
    [
        ("note.txt", {}, "note.txt is a file"),
        ("note.txt/out", {}, "note.txt is a file"),
        ("/proc/nowhere", {}, "nowhere cannot be written into the folder /proc"),
        ("out", {"seeds": 0}, "seeds is 0, but a whole number of at least 1"),
        ("out", {"seeds": 10**12}, "The number of seeds must be between 1 and 1000, not 1000000000000"),
        ("out", {"engine": "spark"}, "The engine must be"),
        ("out", {"rows": ["hihg"]}, "There is no row of toy named 'hihg'. Did you mean high?"),
    ],
)
def test_what_cannot_be_run_gets_a_sentence(toy, tmp_path, folder, options, words):
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(InputError, match=words):
        reproduce(toy[0], tmp_path / folder, **options)
    assert (tmp_path / "note.txt").read_text() == "mine"


def test_a_missing_data_set_is_asked_for_before_any_cell(toy, tmp_path, home):
    experiment, ran = toy
    # The high row alone reads what is not here; digits come with a library.
    reads = replace(experiment, datasets=lambda p: ("mnist",) if p.level == 0.9 else ("digits",))
    with pytest.raises(InputError) as refused:
        reproduce(reads, tmp_path / "out", preset="smoke")
    said = str(refused.value)
    assert said.startswith("The experiment toy needs MNIST, which is not here: get it from https://")
    assert said.endswith("with: nearid data fetch mnist") and "\n" not in said
    assert ran() == [] and not (tmp_path / "out").exists()
    check_machine(plan(reads, tmp_path / "out", rows=["low"]))
    asked = plan(reads, tmp_path / "out")
    # Workers elsewhere may have it.
    for elsewhere in ("tcp://127.0.0.1:8786", Inline()):
        check_machine(asked, engine=elsewhere)
    for here in (None, "local", LOCAL, "dask"):
        with pytest.raises(InputError, match="needs MNIST"):
            check_machine(asked, engine=here)
    write_mnist(home("mnist"), np.random.default_rng(0))
    check_machine(asked)


def test_what_the_user_must_give_is_asked_for_before_any_cell(toy, tmp_path):
    experiment, ran = toy

    def ready(p):
        raise InputError(f"a file of {p.kind} numbers is needed")

    asking = replace(experiment, ready=ready)
    with pytest.raises(InputError, match="a file of plain numbers is needed"):
        reproduce(asking, tmp_path / "out", preset="smoke")
    assert ran() == [] and not (tmp_path / "out").exists()
    # Workers elsewhere may have it.
    check_machine(plan(asking, tmp_path / "out"), engine="tcp://127.0.0.1:8786")


def test_a_missing_module_is_named_with_its_extra(toy, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError, match=r"toy needs torch, which is not installed: pip install 'nearid\[lab\]'\."):
        reproduce(replace(toy[0], requires={"torch": "lab"}), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_device_that_is_not_there_is_told_before_the_first_cell(toy, tmp_path):
    torch = pytest.importorskip("torch", reason="the extra `lab` is not installed")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    experiment, ran = toy

    @dataclass(frozen=True)
    class OnDevice(type(experiment.defaults)):
        device: str = parameter("cpu", "a device")

    placed = replace(experiment, defaults=OnDevice(log=experiment.defaults.log))
    with pytest.raises(InputError, match=r"The device 'cuda' is not available on this machine\. Choose cpu or auto"):
        reproduce(placed, tmp_path / "out", preset="smoke", parameters={"device": "cuda"})
    assert ran() == [] and not (tmp_path / "out").exists()


def test_the_usual_table_has_the_folder_itself(toy, tmp_path):
    experiment, _ = toy
    for options in ({}, {"seeds": 3}, {"parameters": {"noise": "0.01"}}, {"rows": ["high", "low"]}):
        asked = plan(experiment, tmp_path, **options)
        assert asked.variant == "" and asked.place == tmp_path and asked.only == ()


def test_other_runs_are_named_after_what_was_asked_for(toy, tmp_path):
    experiment, _ = toy
    changes = {"sizes": "3,4", "noise": "0.5", "high": "yes"}
    asked = plan(experiment, tmp_path, preset="smoke", seeds=5, rows=["low"], parameters=changes)
    assert asked.variant == "smoke,seeds=5,noise=0.5,sizes=3+4,row=low" and asked.place == tmp_path / asked.variant
    # The order in which it was typed is no difference.
    again = plan(
        experiment, tmp_path, preset="smoke", seeds=5, rows=["low"], parameters=dict(reversed(changes.items()))
    )
    assert again.place == asked.place and [c.name for c in again.cells] == [c.name for c in asked.cells]


def test_names_stay_within_the_folder_and_apart(toy, tmp_path):
    experiment, _ = toy
    kinds = ["../../elsewhere", "..\\elsewhere", "a b", "a/b", "x" * 300, "x" * 301]
    places = [plan(experiment, tmp_path, parameters={"kind": kind}).place for kind in kinds]
    assert len(set(places)) == len(kinds)
    for place in places:
        assert place.parent == tmp_path and len(place.name) <= LONGEST + 9
        place.mkdir()


def test_a_run_before_it_begins(tmp_path):
    asked = plan(TOY, tmp_path, preset="smoke", rows=["high"], parameters={"noise": "inf"})
    told = json.loads(json.dumps(details(asked), allow_nan=False))
    assert told["parameters"]["steps"] == {"value": 2, "about": "points of the curve"}
    assert told["parameters"]["sizes"]["value"] == [1, 2] and told["seeds"] == 2
    assert [(row["row"], row["changes"]) for row in told["rows"]] == [("high", {"level": 0.9})]
    assert "High is high." in told["claims"] and told["folder"] == str(tmp_path / "smoke,noise=inf,row=high")
