"""Experiments without networks: quick, and able to fail, die and be interrupted."""

import os
import signal
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from nearid.lab.framework.claims import Claim, all_of, at_least, at_most, exceeds
from nearid.lab.framework.experiment import Axes, Column, Experiment, Paper, Preset, Published, Row
from nearid.lab.framework.settings import Checked, parameter
from nearid.show.figures import HeatMap, scatter_matrix

NASTY = '</script><script>document.title="owned"</script>'


@dataclass(frozen=True)
class Parameters(Checked):
    level: float = parameter(0.5, "the mean")
    noise: float = parameter(0.01, "its standard deviation")
    steps: int = parameter(5, "points of the curve", smoke=2)
    wrong: int = parameter(-1, "a seed that fails")
    deadly: int = parameter(-1, "a seed that kills its process")
    high: bool = parameter(True, "whether there is a high row")
    sizes: tuple[int, ...] = parameter((1, 2), "some sizes")
    kind: str = parameter("plain", "a word")
    log: str = parameter("", "a file that is told of every cell")


def cell(p, seed, folder):
    """Random numbers drawn step by step, each kept in the folder; TOY_SECONDS for each step."""
    if p.log:
        with open(p.log, "a") as log:
            log.write(f"{p.level} {seed}\n")
    if seed == p.wrong:
        raise ValueError(f"seed {seed} is {NASTY}")
    if seed == p.deadly:
        os.kill(os.getpid(), signal.SIGKILL)
    rng, values = np.random.default_rng(seed), []
    kept = Path(folder, "values")
    before = kept.read_text().split() if kept.exists() else []
    for step in range(p.steps):
        values.append(p.level + p.noise * rng.normal())
        if step >= len(before):
            time.sleep(float(os.environ.get("TOY_SECONDS", "0")))
            # A kill in the midst of writing must not lose the steps before.
            kept.with_suffix(".new").write_text(" ".join(map(repr, values)))
            kept.with_suffix(".new").replace(kept)
        else:
            assert repr(float(values[-1])) == before[step]
    return {
        "scores": {"score": float(np.mean(values)), "undefined": float("nan")},
        "curves": {"walk": {"x": list(range(p.steps)), "y": [float(v) for v in values]}},
        "views": {"went_on_after": len(before)},
    }


def rows(p):
    low = Row("low", f"low {NASTY}", published={"score": Published(0.5, verified=True)})
    high = Row("high", "high", {"level": 0.9}, {"score": Published(0.87, note="read off a figure")})
    return [low, high] if p.high else [low]


def figures(result):
    points = {NASTY: [0.0, 1.0, 2.0], "b": [1.0, 0.0, 1.0]}
    return [
        scatter_matrix("true against recovered", "thin is good", points, points),
        HeatMap(
            "correlation", NASTY, {"before": [[1, 0.5], [0, 1]], "after": [[1, 0], [0, 1]]}, ["a", "b"], ["c", "d"]
        ),
    ]


TOY = Experiment(
    name="toy",
    paper=Paper("Nobody & Co", f"On Toys {NASTY}", "Nowhere 2020", "https://example.org/toys"),
    shows="Table 0",
    about="A sentence.",
    defaults=Parameters(),
    presets={"smoke": Preset("no time", 2), "cpu": Preset("a moment", 3)},
    columns=(Column("score", "score", 2), Column("undefined", "undefined")),
    rows=rows,
    cell=cell,
    claims=(
        Claim("High is high.", at_least("high", "score", 0.8)),
        Claim("Low is high.", at_least("low", "score", 0.8)),
        Claim("High is above low.", exceeds(("high", "score"), ("low", "score"), 0.3)),
        Claim("Both are small.", all_of(at_most("high", "score", 2), at_most("low", "undefined", 1))),
    ),
    curves=(Axes("walk", "The walk", "step", "value"),),
    figures=figures,
    requires={},
)

# The same, with a data set that is in no test.
WANTING = replace(TOY, name="wanting", datasets=lambda p: ("3dident",))
