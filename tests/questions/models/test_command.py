"""`nearid layers A B --data X`: models instead of folders."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch

NETS = """
import os, time
from torch import nn

class Slow(nn.Module):
    def forward(self, x):
        time.sleep(float(os.environ.get("SLOW", 0)))
        return x

def make():
    return nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 4), nn.Linear(4, 7))

def slow():
    return nn.Sequential(Slow(), *make())
"""


@pytest.fixture
def files(tmp_path, network, inputs):
    """Two checkpoints and inputs, as arguments and options of the command."""
    (tmp_path / "nets_here.py").write_text(NETS)
    for seed in (0, 1):
        torch.save(network(seed).state_dict(), tmp_path / f"{seed}.pt")
    np.save(tmp_path / "inputs.npy", inputs)
    yield ["layers", "0.pt", "1.pt", "--data", "inputs.npy", "--factory", "nets_here:make"]
    sys.modules.pop("nets_here", None)


def test_two_models_to_a_page_in_one_command(nearid, files, tmp_path):
    done = nearid(*files, "--permutations", "19", "--report", "page.html", "--measures", "cka,r2")
    assert done.returncode == 0, done.stderr
    assert " of 4) corresponds to layer " in done.stdout and "Report written" in done.stderr
    assert "Which layers of two models correspond" in (tmp_path / "page.html").read_text(encoding="utf-8")
    again = nearid(*files, "--permutations", "2", "--json")
    told = json.loads(again.stdout)
    assert [each["was_there"] for each in told["provenance"]["cache"]["entries"]] == [True, True]
    assert told["names"] == ["0.pt", "1.pt"] and told["layers"]["layers"][0] == ["0", "1", "2", "3"]
    assert told["best"]["verdict"]["group"] and told["last"]["verdict"]["group"]


def test_options_of_one_model_alone(nearid, files):
    done = nearid(*files, "--permutations", "2", "--no-cache", "--json", "--options-b", "layers=2")
    told = json.loads(done.stdout)
    assert told["layers"]["layers"] == [["0", "1", "2", "3"], ["2"]] and told["provenance"]["cache"] is None


def test_without_data_it_compares_folders_as_before(nearid, files, refused):
    for seed in (0, 1):
        made = nearid("extract", f"{seed}.pt", "inputs.npy", "-o", f"run{seed}", "--factory", "nets_here:make")
        assert made.returncode == 0, made.stderr
    done = nearid("layers", "run0", "run1", "--permutations", "2", "--json")
    assert json.loads(done.stdout)["names"] == ["run0", "run1"]
    assert "--pool, --no-cache: used only with --data" not in done.stderr
    assert "--pool: used only with --data, which was not given" in refused("layers", "run0", "run1", "--pool", "cls")
    assert "not a folder of extracted layers" in refused("layers", "0.pt", "1.pt")


def test_one_model_is_too_few(refused, files):
    assert "Two models are needed" in refused("layers", "0.pt", *files[3:])


def test_help_has_the_options_of_both_once(nearid):
    text = nearid("layers", "--help").stdout
    for option in ("--measures", "--data", "--pool", "--batch-size", "--no-cache", "--options-a", "--factory"):
        assert text.count(f"\n  {option} ") + text.count(f"/ {option} ") == 1, option
    assert "--out" not in text and "--overwrite" not in text


def test_a_killed_command_is_taken_up(nearid, files, tmp_path, place):
    files[-1] = "nets_here:slow"
    for seed in (0, 1):
        weights = torch.load(tmp_path / f"{seed}.pt")
        torch.save({f"{int(name[0]) + 1}{name[1:]}": w for name, w in weights.items()}, tmp_path / f"{seed}.pt")
    # Every batch is made safe at once.
    program = "from nearid.questions.extract import store; store.SECONDS = 0; from nearid.cli.app import main; main()"
    files = [*files, "--permutations", "2", "--batch-size", "10", "--json"]
    running = subprocess.Popen([sys.executable, "-c", program, *files], cwd=tmp_path, env={**os.environ, "SLOW": "0.1"})
    for _ in range(1200):
        notes = list(place.glob("*/layers.partial/progress.json"))
        if notes and json.loads(notes[0].read_text())["state"]["inputs"] >= 20:
            break
        time.sleep(0.05)
    running.send_signal(signal.SIGKILL)
    running.wait()
    (note,) = place.glob("*/layers.partial/progress.json")
    assert 20 <= json.loads(note.read_text())["state"]["inputs"] < 240
    told, direct = (json.loads(nearid(*files, *more).stdout) for more in ([], ["--no-cache"]))
    assert [each["was_there"] for each in told["provenance"]["cache"]["entries"]] == [False, False]
    assert told["layers"]["values"] == direct["layers"]["values"]
    assert len(list(place.glob("*/sums.json"))) == 2 and not list(place.glob("*/layers.partial"))
