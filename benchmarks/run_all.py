"""Run every benchmark, and write the table of figures in docs/benchmarks.md.

usage: python benchmarks/run_all.py            at most 30 minutes; writes the page
       python benchmarks/run_all.py --quick    with tiny inputs, about 75 core seconds; prints the table
       python benchmarks/run_all.py --only ica,score

The rows of a finished benchmark are kept in a folder (--keep). The same command continues after an interruption: it
runs what is missing, and what was measured with other arguments, other code or on another machine. --again runs all.

Every benchmark has a limit in seconds. One that exceeds it is stopped with all of its processes, and the rows that it
has finished are kept and marked. A script that fails, or lacks data or a peer, is listed with the reason. The others
continue.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import platform
import signal
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
KEEP = HERE.parent / ".cache" / "benchmarks"
BEGIN, END = "<!-- figures of run_all.py -->", "<!-- end of figures -->"
# Seconds after which a script of a quick run is stopped. Most of them are imports, and a busy machine takes longer.
QUICK = 120


class Benchmark(NamedTuple):
    """A script, its arguments in a full and in a quick run, the limit of a full one, and its data below NEARID_DATA."""

    script: str
    full: str
    quick: str | None
    seconds: int
    data: str = ""


# The limits add up to 30 minutes.
BENCHMARKS = {
    "compare": Benchmark(
        "bench_compare", "--rows 500000 --peer-rows 100000", "--rows 20000 --columns 16 --peer-rows 5000", 360
    ),
    "score": Benchmark(
        "bench_score",
        "infomec dci trees mcc --rows 4000 --many 500000",
        "infomec mcc --rows 1000 --many 20000 --repeats 1",
        300,
    ),
    # Its sizes are fixed: they are those of the goals.
    "score-commands": Benchmark("bench_score", "whole", None, 180),
    "ica": Benchmark(
        "bench_ica", "--rows 50000 --columns 128 --data well,mild", "--rows 3000 --columns 6 --data well", 420
    ),
    "sampling": Benchmark("bench_sampling", "", "--size 256 --draws 500", 60),
    "renderer": Benchmark("bench_renderer", "", "--size 500 --side 32 --loop 5", 90),
    "training": Benchmark(
        "bench_training", "--batch 1024 --seconds 2", "--batch 128 --kinds sphere --encoders small --seconds 0.1", 120
    ),
    "extract": Benchmark(
        "bench_extract", "--images 2000 --flat 0", "--images 100 --repeats 1 --flat 0", 150, data="cifar10"
    ),
    "lipschitz": Benchmark(
        "bench_lipschitz", "--peer-points 10", "--points 20 --peer-points 2", 120, data="mnist_vaes"
    ),
}


def arguments(name: str, quick: bool) -> list[str]:
    """The arguments of a benchmark."""
    own = BENCHMARKS[name]
    chosen = ((own.quick if quick else own.full) or "").split()
    if name == "ica":
        # Peers that are not installed are left out.
        chosen += ["--peers", "sklearn32,sklearn64" + (",picard" if importlib.util.find_spec("picard") else "")]
    return chosen


def run(name: str, quick: bool, keep: Path, limit: int) -> dict[str, Any]:
    """Run one benchmark: its rows, the seconds it took, and why it did not end (empty if it did)."""
    own = BENCHMARKS[name]
    if quick and own.quick is None:
        return {"rows": [], "reason": "not part of a quick run: its sizes are fixed"}
    if own.data and not Path(os.environ.get("NEARID_DATA", ""), own.data).is_dir():
        return {"rows": [], "reason": f"needs {own.data} below NEARID_DATA"}
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, open(keep / f"{name}.log", "w") as log:
        rows = Path(folder, "rows.jsonl")
        rows.touch()
        command = [sys.executable, str(HERE / f"{own.script}.py"), *arguments(name, quick)]
        # In a session of its own, so that it can be stopped together with the processes that it starts.
        # Its temporary files are removed with the folder, also if it is stopped.
        environment = os.environ | {ROWS: str(rows), "TMPDIR": folder}
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        try:
            code = process.wait(limit)
            reason = "" if code == 0 else f"failed: {last_line(keep / f'{name}.log') or f'exit code {code}'}"
        except subprocess.TimeoutExpired:
            reason = f"stopped after {limit} seconds"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        # A script that is stopped while it writes leaves a line without an end.
        whole = [line for line in rows.read_text().splitlines(keepends=True) if line.endswith("\n")]
    return {"rows": [json.loads(line) for line in whole], "reason": reason, "seconds": time.perf_counter() - start}


def last_line(log: Path) -> str:
    """The last line that a script printed."""
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""


def identity(name: str, quick: bool) -> dict[str, Any]:
    """What the rows of a benchmark depend on; rows that were measured otherwise are not reused."""
    sources = [*sorted((HERE.parent / "src").rglob("*.py")), HERE / f"{BENCHMARKS[name].script}.py"]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    return {"arguments": arguments(name, quick), "code": digest, "machine": processor(), "versions": versions()}


def kept(file: Path, wanted: dict[str, Any]) -> dict[str, Any] | None:
    """The finished benchmark in a file, if it was measured in the same way."""
    try:
        found = json.loads(file.read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("identity") == wanted and not found.get("reason") else None


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


def processor() -> str:
    """The processor and its number of cores."""
    cpu = Path("/proc/cpuinfo")
    lines = cpu.read_text().splitlines() if cpu.exists() else []
    found = [line.partition(":")[2].strip() for line in lines if "model name" in line]
    return f"{found[0] if found else platform.processor()}, {os.cpu_count()} cores"


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
    parser.add_argument("--only", default=",".join(BENCHMARKS), help="names of benchmarks, with commas")
    parser.add_argument("--out", type=Path, help="page to write; default: docs/benchmarks.md, with --quick none")
    parser.add_argument("--keep", type=Path, default=KEEP, help="folder of the rows of finished benchmarks")
    parser.add_argument("--seconds", type=int, help="limit of each benchmark instead of its own, for a busy machine")
    parser.add_argument("--again", action="store_true", help="also run what is finished")
    given = parser.parse_args()
    chosen = given.only.split(",")
    wrong = [name for name in chosen if name not in BENCHMARKS]
    if wrong:
        raise SystemExit(f"There is no benchmark {wrong[0]!r}. There are: {', '.join(BENCHMARKS)}.")
    keep = given.keep / ("quick" if given.quick else "full")
    keep.mkdir(parents=True, exist_ok=True)
    results = {}
    for name in chosen:
        file, wanted = keep / f"{name}.json", identity(name, given.quick)
        found = None if given.again else kept(file, wanted)
        how = "kept" if found else "done"
        if found is None:
            found = {"identity": wanted, "when": f"{datetime.now(UTC):%d %B %Y}", "load": os.getloadavg()[0]}
            found |= run(name, given.quick, keep, given.seconds or (QUICK if given.quick else BENCHMARKS[name].seconds))
            part = file.with_suffix(".part")
            part.write_text(json.dumps(found, indent=1))
            part.replace(file)
        results[name] = found
        print(f"{name}: {found['reason'] or how}, {found.get('seconds', 0):.0f} s", file=sys.stderr, flush=True)
    section = figures(results, given.quick)
    out = given.out or (None if given.quick else PAGE)
    if out is None:
        print("\n".join(section))
    else:
        out.write_text(page(out.read_text(), section))


def figures(results: dict[str, dict[str, Any]], quick: bool) -> list[str]:
    """The lines of the page: how it was measured, the table, and what is missing."""
    days = list(dict.fromkeys(found["when"] for found in results.values()))
    minutes = sum(found.get("seconds", 0) for found in results.values()) / 60
    loads = [found["load"] for found in results.values()]
    kind = "quick run, tiny inputs" if quick else "full run"
    section = [
        f"Measured on {' and '.join(days)} ({kind}, {minutes:.1f} minutes): {processor()}, load {min(loads):.1f} to "
        f"{max(loads):.1f} when the benchmarks began. {versions()}.",
        "Ratios are peer / nearid.",
        "",
        *table(row for found in results.values() for row in found["rows"]),
    ]
    reasons = {f"`{name}`": found["reason"] for name, found in results.items() if found["reason"]}
    if "ica" in results and not importlib.util.find_spec("picard"):
        reasons["picard"] = "not installed (pip install python-picard)"
    if reasons:
        section += ["", "Left out or incomplete:", "", *(f"- {name}: {reason}" for name, reason in reasons.items())]
    return section


if __name__ == "__main__":
    main()
