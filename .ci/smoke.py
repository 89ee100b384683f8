"""Try an installed nearid from an empty folder: python smoke.py WHEEL_OR_SDIST FOLDER."""

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import distribution
from importlib.resources import files
from pathlib import Path

import numpy as np

built, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
os.chdir(folder)
# The environment's own commands, whatever the caller's PATH has.
COMMAND = Path(sys.prefix) / "bin" / "nearid"


def check(true: bool, what: str) -> None:
    if not true:
        sys.exit(f"smoke test of {built.name}: {what}")


def run(*words: str) -> str:
    done = subprocess.run([COMMAND, *words], capture_output=True, text=True, timeout=120)
    check(done.returncode == 0, f"`nearid {' '.join(words)}` ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


import nearid  # noqa: E402, from the environment: this folder is empty

check(Path(nearid.__file__).is_relative_to(sys.prefix), f"{nearid.__file__} is not the installed package")
check(nearid.__version__ == distribution("nearid").version, "version and metadata differ")
check(nearid.__version__ in built.name, "the name of the file has another version")
check((files("nearid") / "py.typed").is_file(), "py.typed is missing")
check(any((files("nearid") / "show" / "templates").iterdir()), "the templates of the pages are missing")
check("torch" not in {d.lower() for d in os.listdir(Path(np.__file__).parents[1])}, "the core brought torch")

if built.suffix == ".whl":
    names = zipfile.ZipFile(built).namelist()
    odd = [n for n in names if n.split("/")[0] not in ("nearid", f"nearid-{nearid.__version__}.dist-info")]
    check(not odd, f"the wheel has {odd[:3]} beside the package")
    check(not [n for n in names if "test" in Path(n).name.split("_")], "the wheel has tests")
else:
    with tarfile.open(built) as archive:
        names = archive.getnames()
    for needed in ("tests/test_package.py", "docs/tools/blocks.py", "benchmarks/validity.py"):
        check(f"nearid-{nearid.__version__}/{needed}" in names, f"the sdist lacks {needed}, so that its tests fail")
# Nothing that is data: every file of nearid is small.
check(not [n for n in names if n.endswith((".npy", ".npz", ".parquet", ".pt", ".onnx"))], "data files were packed")

check(run("--version").strip() == f"nearid {nearid.__version__}", "`nearid --version` prints another version")
check("compare" in run("--help"), "`nearid --help` does not list compare")
rng = np.random.default_rng(0)
x = rng.normal(size=(400, 4))
np.save("x.npy", x)
np.save("y.npy", x @ np.linalg.qr(rng.normal(size=(4, 4)))[0] + 1e-3 * rng.normal(size=x.shape))
told = json.loads(run("compare", "x.npy", "y.npy", "--json", "--report", "page.html"))
check(told["verdict"]["group"] == "rigid", f"a rotation was judged {told['verdict']['group']!r}")
check(Path("page.html").stat().st_size > 10_000, "the report is empty")
print(f"{built.name}: {built.stat().st_size / 1e6:.2f} MB, {len(names)} files, installed and tried")
