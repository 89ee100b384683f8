"""What the layers of language models are asked: scores from agreement layer by layer, claims and pictures of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from nearid.lab.framework.claims import Claim, Outcome, Status, all_of, at_least, decide, exceeds
from nearid.lab.framework.estimate import Estimate
from nearid.lab.framework.experiment import Column
from nearid.lab.framework.figures import Coordinates, Scatter, Slot

if TYPE_CHECKING:
    from nearid.lab.framework.result import Result

# Layers of the paper, counted back from the last.
BACK = (0, 4, 8, 12)
# The k of the table.
MODERATE = 16
# The paper's models, as the hub names them.
PRETRAINED = "gpt2,gpt2-medium,gpt2-large,gpt2-xl"
# Rows of trained models, each with one of the same models untrained.
TRAINED = ("widths", "same")
# Names of the axes of the pictures.
AXES = ("layers before the last", "SVCCA")
# What training must add to the agreement of the last layer to be seen at once, and the share of its variance that a
# linear map must carry over: all but a fifth.
CLEARLY, CARRIED = 0.1, 0.8


def scores(table: np.ndarray, ks: Sequence[int]) -> dict[str, float]:
    """Scores from the agreement at each k (rows) and layer, counted back from the last (columns).

    The columns are all layers, or those of BACK alone.
    """
    places = BACK if table.shape[1] > len(BACK) else range(len(BACK))
    usual = table[ks.index(MODERATE)]
    found = {f"back{back}": float(usual[at]) for back, at in zip(BACK, places, strict=True)}
    found |= {"most0": float(table[-1, places[0]]), "most4": float(table[-1, places[1]])}
    leads = [k for k, row in zip(ks, table, strict=True) if all(row[0] > row[at] for at in places[1:])]
    return found | {"leads": float(max(leads, default=0))}


def _last_leads(found: Result, row: str) -> Outcome:
    return all_of(*(exceeds(found, (row, "back0"), (row, f"back{back}")) for back in BACK[1:]))


def _later_lead(found: Result, back: int) -> Outcome:
    """The mean of the last and 4 before against an earlier one."""
    return all_of(*(_signed(found, row, {0: 0.5, 4: 0.5, back: -1.0}) for row in TRAINED))


def _gain_grows(found: Result) -> Outcome:
    """What training adds to the last against what it adds to earlier ones."""
    return all_of(*(_signed(found, row, {0: 1.0, back: -1.0}, gain=True) for row in TRAINED for back in BACK[1:]))


def _signed(found: Result, row: str, weights: Mapping[int, float], *, gain: bool = False) -> Outcome:
    """Whether a weighted sum over layers is above 0, of their agreement or of what training adds to it."""
    untrained = f"{row}-untrained"
    rows = [row, untrained] if gain else [row]
    sums: dict[int, float] = {}
    for seed in found.scores(row, "back0"):
        for back, weight in weights.items():
            held = [found.scores(key, f"back{back}").get(seed, np.nan) for key in rows]
            sums[seed] = sums.get(seed, 0.0) + weight * (held[0] - held[1] if gain else held[0])
    more, less = (
        " and ".join(f"-{back}" if back else "last" for back, weight in weights.items() if sign * weight > 0)
        for sign in (1, -1)
    )
    label = f"{'gain of ' if gain else ''}{'mean of ' * (' and ' in more)}{more} minus {less}, row {row}"
    return decide(found, rows, Estimate.over([v for v in sums.values() if np.isfinite(v)]), 0.0, label, above=True)


def _training_adds(found: Result) -> Outcome:
    return all_of(*(exceeds(found, (r, "back0"), (f"{r}-untrained", "back0"), by=CLEARLY) for r in TRAINED))


def _linear(found: Result) -> Outcome:
    return at_least(found, "same", "r2", CARRIED)


def _published_models(found: Result) -> Outcome:
    if not found.parameters.models:
        how = (
            f"Needs the pretrained models: --row pretrained --set models={PRETRAINED} gets them from the hub (9 GB; "
            "pip install 'nearid[hf]'), or names folders that hold them."
        )
        return Outcome(Status.NOT_TESTABLE, how)
    return _last_leads(found, "pretrained")


def figures(found: Result) -> Sequence[Slot]:
    """Agreement over layers, the mean over seeds: of every row at the usual k, then of each row at every k."""
    told = "Mean canonical correlation of the k leading components, averaged over pairs and seeds; 0 is the last."
    usual, single = dict[str, Coordinates](), list[Slot]()
    for row in found.rows:
        held = [f.data["views"] for f in found.of_row(row.key) if "views" in f.data]
        if held:
            table = np.mean([v["layers"] for v in held], axis=0).round(4)
            back = [-k for k in (BACK if table.shape[1] == len(BACK) else range(table.shape[1]))]
            curves = {k: (back, row.tolist()) for k, row in zip(held[0]["components"], table, strict=True)}
            usual[row.title] = curves[MODERATE]
            by_k = {f"k = {k}": curve for k, curve in curves.items()}
            single.append(Scatter(f"{row.title}: agreement of the layers", told, *AXES, by_k, {}))
    return [Scatter(f"Agreement of the layers at k = {MODERATE}", told, *AXES, usual, {}), *single] if usual else []


def _columns() -> list[Column]:
    names = {back: f"-{back}" if back else "last" for back in BACK}
    usual = [Column(f"back{back}", f"{name}, k = {MODERATE}", least=0, most=1) for back, name in names.items()]
    return [*usual, *(Column(f"most{back}", f"{names[back]}, largest k", least=0, most=1) for back in BACK[:2])]


COLUMNS = (
    *_columns(),
    Column("leads", "largest k at which the last leads", 0, least=0),
    Column("shuffled", f"last, k = {MODERATE}, words shuffled", least=0, most=1),
    Column("r2", "R2 of a linear map, last", most=1),
    Column("r2_heads", "R2 of the map from heads", most=1),
    Column("loss", "cross-entropy, held out", least=0),
)
EARLIER = f"those 4, 8 and 12 layers before (k = {MODERATE})"
CLAIMS = (
    Claim(
        f"Models of several widths: the last hidden state agrees more than {EARLIER}.",
        lambda found: _last_leads(found, "widths"),
    ),
    Claim("So it does in models of one width.", lambda found: _last_leads(found, "same")),
    Claim(
        f"The mean of the last and 4 before agrees more than 8 before (k = {MODERATE}).",
        lambda found: _later_lead(found, 8),
    ),
    Claim("It agrees more than 12 before, the embedding.", lambda found: _later_lead(found, 12)),
    Claim(f"Training adds more to the agreement of the last hidden state than to {EARLIER}.", _gain_grows),
    Claim(f"Training makes the last hidden state agree more than it does untrained (by {CLEARLY}).", _training_adds),
    Claim(
        "A linear map carries the last hidden state of one run to that of another of the same width (held out, R2 at "
        f"least {CARRIED}).",
        _linear,
    ),
    Claim(f"The pretrained GPT-2: the last hidden state agrees more than {EARLIER}.", _published_models),
)
