"""Run every benchmark, and write the table of figures in docs/benchmarks.md.

usage: python benchmarks/run_all.py            chosen for 30 minutes on 2 cores, not yet timed; writes the page
       python benchmarks/run_all.py --quick    with tiny inputs, meant to take a minute; prints the table
       python benchmarks/run_all.py --only ica,score

A script that fails, or lacks data or a peer, is listed with the reason. The others continue.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from measure import ROWS

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "benchmarks.md"
BEGIN, END = "<!-- figures of run_all.py -->", "<!-- end of figures -->"
# Seconds after which a script is stopped.
LONGEST = 900


class Script(NamedTuple):
    """A benchmark: its arguments in a full and in a quick run, and what it needs below NEARID_DATA."""

    full: str
    quick: str
    data: str = ""


SCRIPTS = {
    "compare": Script("--rows 500000 --columns 256 --peer-rows 100000", "--rows 20000 --columns 16 --peer-rows 5000"),
    "score": Script("--rows 4000 --many 500000", "infomec mcc --rows 1000 --many 20000 --repeats 1"),
    "ica": Script("--rows 50000 --columns 128 --data well,mild", "--rows 3000 --columns 6 --data well"),
    "sampling": Script("", "--size 256 --draws 500"),
    "renderer": Script("", "--size 500 --side 32 --loop 5"),
    "training": Script("--batch 1024 --seconds 2", "--batch 128 --kinds sphere --encoders small --seconds 0.1"),
    "extract": Script("--images 2000 --flat 0", "--images 100 --repeats 1 --flat 0", data="cifar10"),
    "lipschitz": Script("--peer-points 10", "--points 20 --peer-points 2", data="mnist_vaes"),
}


def run(name: str, script: Script, quick: bool, rows: Path) -> str:
    """Run one script, which appends its rows to a file. Return why there are none, or an empty text."""
    if script.data and not Path(os.environ.get("NEARID_DATA", ""), script.data).is_dir():
        return f"needs {script.data} below NEARID_DATA"
    arguments = (script.quick if quick else script.full).split()
    if name == "ica":
        # Peers that are not installed are left out.
        arguments += ["--peers", "sklearn32,sklearn64" + (",picard" if importlib.util.find_spec("picard") else "")]
    command = [sys.executable, str(HERE / f"bench_{name}.py"), *arguments]
    try:
        done = subprocess.run(
            command, env=os.environ | {ROWS: str(rows)}, capture_output=True, text=True, timeout=LONGEST
        )
    except subprocess.TimeoutExpired:
        return f"stopped after {LONGEST} seconds"
    lines = done.stderr.strip().splitlines()
    return f"failed: {lines[-1] if lines else f'exit code {done.returncode}'}" if done.returncode else ""


def table(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Lines of the table. Ratios are peer / nearid; in brackets, nearid / limit."""
    lines = ["| what | nearid | peer | limit | ratio |", "| --- | --- | --- | --- | --- |"]
    for row in rows:
        peer = f"{row['peer']:.3g} {row['unit']} ({row['by']})" if row["peer"] is not None else ""
        limit = f"{row['limit']:.3g} {row['unit']}" if row["limit"] is not None else ""
        ratio = f"{row['peer'] / row['ours']:.1f}" if row["peer"] is not None else ""
        ratio += f" ({row['ours'] / row['limit']:.1f} of the limit)" if row["limit"] is not None else ""
        lines.append(f"| {row['what']} | {row['ours']:.3g} {row['unit']} | {peer} | {limit} | {ratio.strip()} |")
    return lines


def machine() -> str:
    """Processor, cores and load, when the run began, in one sentence."""
    cpu = Path("/proc/cpuinfo")
    found = (
        [line.partition(":")[2].strip() for line in cpu.read_text().splitlines() if "model name" in line]
        if (cpu.exists())
        else []
    )
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    return f"{found[0] if found else platform.processor()}, {os.cpu_count()} cores, load {load} at the start"


def versions() -> str:
    """Versions of Python, nearid and the peers."""
    names = ["nearid", "numpy", "scipy", "scikit-learn", "python-picard", "torch", "numba"]
    held = [f"Python {platform.python_version()}"]
    for name in names:
        try:
            held.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            held.append(f"{name} not installed")
    return ", ".join(held)


def page(old: str, section: list[str]) -> str:
    """The page with another section between its marks."""
    before, _, rest = old.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise SystemExit(f"The page has no section between {BEGIN} and {END}.")
    return "\n".join([before.rstrip("\n"), "", BEGIN, "", *section, "", END]) + after


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default=",".join(SCRIPTS), help="names of scripts, with commas")
    parser.add_argument("--out", type=Path, help="page to write; default: docs/benchmarks.md, with --quick none")
    given = parser.parse_args()
    chosen = given.only.split(",")
    wrong = [name for name in chosen if name not in SCRIPTS]
    if wrong:
        raise SystemExit(f"There is no benchmark {wrong[0]!r}. There are: {', '.join(SCRIPTS)}.")
    where, began = machine(), time.perf_counter()
    reasons: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder, "rows.jsonl")
        rows.touch()
        for name in chosen:
            start = time.perf_counter()
            reason = run(name, SCRIPTS[name], given.quick, rows)
            print(f"{name}: {reason or 'done'}, {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
            if reason:
                reasons[f"`bench_{name}.py`"] = reason
        if "ica" in chosen and not importlib.util.find_spec("picard"):
            reasons["picard"] = "not installed (pip install python-picard)"
        made = table(map(json.loads, rows.read_text().splitlines()))
    kind = "quick run, tiny inputs" if given.quick else "full run"
    took = f"{(time.perf_counter() - began) / 60:.0f} minutes"
    section = [
        f"Measured on {datetime.now(UTC):%d %B %Y} ({kind}, {took}): {where}. {versions()}.",
        "Ratios are peer / nearid.",
        "",
        *made,
    ]
    if reasons:
        section += ["", "Left out:", "", *(f"- {name}: {reason}" for name, reason in reasons.items())]
    out = given.out or (None if given.quick else PAGE)
    if out is None:
        print("\n".join(section))
    else:
        out.write_text(page(out.read_text(), section))


if __name__ == "__main__":
    main()
