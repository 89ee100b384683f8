"""The command of benchmarks/validity.py: a table, runs that are kept, and a second call that goes on."""

import json
import subprocess
import sys
from pathlib import Path

PATH = Path(__file__).parents[1] / "benchmarks" / "validity.py"


def table_of(*words):
    done = subprocess.run([sys.executable, PATH, *words], capture_output=True, text=True, check=True)
    return [line.split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")][1:]


def test_runs_are_kept_and_a_second_call_adds_the_missing_ones(tmp_path):
    kept = tmp_path / "runs.jsonl"
    table = table_of("--only", "independent", "--runs", "2", "--json", str(kept))
    assert [row[0] for row in table] == ["| 200 x 8", "| 200 x 32", "| 1000 x 8", "| 1000 x 32"]
    assert all(row[-1] == "2 |" for row in table)

    # A kept outcome is taken as it is, so that it was not computed again.
    first, *others = kept.read_text().splitlines()
    *key, outcome = json.loads(first)
    assert (key, outcome) == (["independent", "200 x 8", 0, 0], False)
    kept.write_text("\n".join([json.dumps([*key, True]), *others[:-1]]) + "\n")
    again = table_of("--only", "independent", "--runs", "2", "--json", str(kept))
    assert [row[2] for row in again] == ["0.500", *(row[2] for row in table[1:])]
    assert len(kept.read_text().splitlines()) == 8
    assert json.loads(kept.read_text().splitlines()[-1]) == json.loads(others[-1])
