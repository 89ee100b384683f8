"""Write the scoreboard of docs/reproduce.md from the stored results: python docs/tools/scoreboard.py."""

import json
from pathlib import Path

from nearid.lab.framework.experiment import experiment

DOCS = Path(__file__).parents[1]
PAGE = DOCS / "reproduce.md"
BEGIN, END = "<!-- scoreboard: written by docs/tools/scoreboard.py -->\n", "<!-- end of the scoreboard -->\n"
# The score that stands for an experiment, and the rows that it is taken from; by file where its rows differ.
HEADLINES = {
    "bilipschitz-recovery": ("mcc", ("leak-0.2",)),
    "contrastive-box": ("mcc", ("laplace-box",)),
    "contrastive-sphere": ("r2", ("sphere-vmf10",)),
    "cpc": ("cca_f", ("base",)),
    "deconfounding": ("auroc_ica", ("screen",)),
    "diet": ("r2_z", ("base-unit",)),
    "disentanglement": ("infom_ica", ("sprites-ae-decay-1", "solids-ae-decay-1")),
    "dislib": ("scale", ("sprites-cnn", "solids-cnn")),
    "faces": ("mcc_ica", ("ae-wide",)),
    "gpt2-svcca": ("back0", ("widths",)),
    "masks-contrastive": ("mcc", ("l1-box",)),
    "mnist-autoencoders": ("rigid", ("leak-1",)),
    "pretrained-pairs": ("efficiency_in", ("akamaster-20-dansun18-20", "akamaster-56-zhengjiakun-56")),
    "radial": ("cca", ("published",)),
    "square-manifolds": ("anisotropy", ("xr",)),
    "supervised": ("r2_z", ("base-free",)),
    "supervised-longer": ("r2_z", ("double-d-free",)),
    "words": ("cca_f", ("more",)),
}
STATUSES = ("reproduced", "not reproduced", "undecided", "not testable here")


def span(values: list[float]) -> str:
    """Least and largest value, or the one value."""
    shown = sorted({f"{value:.4g}" for value in values}, key=float)
    return shown[0] if len(shown) == 1 else f"{shown[0]} to {shown[-1]}"


def figures(table: list[dict], column: str, rows: tuple[str, ...]) -> tuple[str, str]:
    """Published and measured values of a score over some rows; published ones of any row where these have none."""
    of = {row["row"]: row["scores"][column] for row in table}
    chosen = [of[row] for row in rows]
    published = [score["published"]["value"] for score in chosen if score["published"]]
    published = published or [score["published"]["value"] for score in of.values() if score["published"]]
    return span(published) if published else "no number", span([score["mean"] for score in chosen])


def line(file: Path) -> str:
    """The row of one stored result."""
    told = json.loads(file.read_text(encoding="utf-8"))
    found = [claim["status"] for claim in told["claims"]]
    core = sum(cell.get("core_seconds") or 0 for cell in told["cells"]) / 60
    changed = "" if file.stem == told["experiment"] else " with other settings"
    column, rows = HEADLINES.get(file.stem) or HEADLINES[told["experiment"]]
    titles = {row["row"]: row["title"] for row in told["table"]}
    score = next(c.title for c in experiment(told["experiment"]).columns if c.key == column)
    cells = [
        f"[{file.stem}](results/{file.stem}.txt)",
        f"{told['paper']['authors']}, {told['shows']}",
        f"{score}; {' and '.join(titles[row] for row in rows)}",
        *figures(told["table"], column, rows),
        *(str(found.count(status)) for status in STATUSES),
        "not stored" if not core else f"{core:.0f}" if core >= 1 else "less than 1",
        f"`nearid reproduce {told['experiment']}`{changed}",
    ]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def scoreboard() -> str:
    """The table, in Markdown."""
    heads = ["experiment", "paper", "score and row", "published", "measured", *STATUSES, "core minutes", "command"]
    lines = [line(file) for file in sorted((DOCS / "results").glob("*.json"))]
    return "\n".join(["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads), *lines]) + "\n"


def page(text: str) -> str:
    """The page with the table as it should be."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + "\n" + scoreboard() + "\n" + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
