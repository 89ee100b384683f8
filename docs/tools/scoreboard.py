"""Write docs/reproduce.md, its tables and pictures from the stored results: python docs/tools/scoreboard.py.

The scores in docs/results/*.json are what runs have measured. All else follows from them: the claims in these files and
the printed tables (*.txt), the scoreboard and the sections of the page, and the pictures in docs/pictures/papers. A new
result is picked up by its file: NAME.json is the result of the experiment NAME, NAME-anything.json a further run of it.

python docs/tools/scoreboard.py nearid-results/NAME/result.json first stores a new result as NAME.json.
"""

import json
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from nearid.lab.framework.claims import Claim, Outcome, Status
from nearid.lab.framework.experiment import Experiment, experiments
from nearid.lab.framework.scoreboard import (
    COUNTED,
    ENOUGH_SEEDS,
    brief,
    command,
    compared,
    core_minutes,
    counts,
    figure,
    filled,
    over_seeds,
    reason,
)
from nearid.lab.framework.stored import StoredResult, read_result
from nearid.lab.framework.view import MARKS, told
from nearid.show.svg import picture
from nearid.show.terminal import text
from nearid.show.view import counted

DOCS = Path(__file__).parents[1]
PAGE, RESULTS, PICTURES = DOCS / "reproduce.md", DOCS / "results", DOCS / "pictures" / "papers"
# Columns of text of the printed tables.
WIDTH = 140
# What stands between these lines is written by this program.
BLOCKS = {
    name: (f"<!-- {name}: written by docs/tools/scoreboard.py -->\n", f"<!-- end of {name} -->\n")
    for name in ("scoreboard", "sections")
}
# Letters of a command in the table.
LONGEST = 100
SIGNS = dict(zip(COUNTED, ("✓", "✗", "?", "–"), strict=True))


@cache
def stored(stem: str) -> StoredResult:
    """A stored result by the name of its file."""
    return read_result(RESULTS / f"{stem}.json")


def files_of(e: Experiment) -> list[str]:
    """Names of the results of an experiment, that of its whole table first."""
    made = {f.stem: json.loads(f.read_text(encoding="utf-8"))["experiment"] for f in sorted(RESULTS.glob("*.json"))}
    return sorted((stem for stem, name in made.items() if name == e.name), key=lambda stem: (stem != e.name, stem))


def by_paper() -> Iterator[tuple[str, list[Experiment]]]:
    """Experiments by the short name of their paper, in the order of the list of all."""
    every = experiments()
    for paper in dict.fromkeys(e.paper for e in every):
        yield paper.short, [e for e in every if e.paper == paper]


def minutes(result: StoredResult) -> str:
    """Core minutes of a result."""
    core = core_minutes(result)
    return "not stored" if not core else f"{core:.0f}" if core >= 1 else "under 1"


def again(result: StoredResult) -> str:
    """The command that gives a result; of an experiment that has changed since, what was typed then."""
    return result.recorded_command if result.older else command(result)


def scoreboard() -> str:
    """The table of all stored results, a line each, and a line for their sum."""
    heads = ["experiment", "score", "published", "measured", "largest difference", "/".join(SIGNS.values())]
    lines = []
    total, stated, sure, folds, late = [0] * len(COUNTED), [0] * len(COUNTED), 0, 0, 0
    for paper, group in by_paper():
        for e in group:
            for stem in files_of(e):
                lines.append(line(stem, f"{paper}, {e.shows}"))
                if stem == e.name:
                    result = stored(stem)
                    own = counts(result, stated=True)
                    total = [a + b for a, b in zip(total, counts(result), strict=True)]
                    stated = [a + b for a, b in zip(stated, own, strict=True)]
                    sure += own[0] if over_seeds(result) else 0
                    folds += own[0] if e.seeds_draw else 0
                    late += sum(c.late and not c.added and o.status is Status.REPRODUCED for c, o in result.outcomes)
    sums = [f"**{_together(total)}**", f"**{_together(stated)}**"]
    lines.append(["**all experiments**", f"{sum(total)} claims", "", "", "", *sums, "", ""])
    sentence = (
        f"The papers state {sum(stated)} of the {sum(total)} claims; nearid added the others. {stated[0]} of these are "
        f"reproduced: {sure} by intervals over {ENOUGH_SEEDS} or more seeds that draw data or train networks, and "
        f"{folds} where networks and data are given and seeds draw folds. {late} of the {stated[0]} were added when "
        "scores that judge them had been seen.\n"
    )
    return table([*heads, "stated by the paper", "core minutes", "command"], lines) + "\n" + sentence


def line(stem: str, shows: str) -> list[str]:
    """The cells of one stored result."""
    result = stored(stem)
    e, both = result.experiment, compared(result)
    whole = stem == e.name
    name = f"[{e.name}](#{e.name})<br>{shows}" if whole else f"[{stem}](#{e.name})<br>further run"
    name += "<br>older version" if result.older else ""
    figures = ["–", "–", "–", "–"]
    if whole and (words := brief(result)):
        figures = [*words, "–"]
    elif both:
        row, difference = both.largest
        unlike = e.section.unlike(result.parameters) if result.readable else ""
        score = f"{both.column.title}, {counted(len(both.rows), 'row')}" + (f"; *{unlike}*" if unlike else "")
        largest = f"{difference:+.{both.column.digits}f}<br>{row.title}"
        figures = [score, both.published_range, both.measured_range, largest]
    claims = [_together(counts(result, stated=stated)) if whole else "–" for stated in (False, True)]
    return [name, *figures, *claims, minutes(result), _shortened(again(result))]


def _shortened(command: str) -> str:
    """A command for the table; of a long one the beginning, because its section has the whole."""
    if len(command) <= LONGEST:
        return f"`{command}`"
    return f"`{command[:LONGEST].rpartition(' --')[0]} ...` (whole below)"


def _together(numbers: list[int]) -> str:
    return "/".join(map(str, numbers))


def table(heads: list[str], lines: list[list[str]]) -> str:
    """A table in Markdown."""
    rows = [heads, ["---"] * len(heads), *lines]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows) + "\n"


def sections() -> str:
    """A section for each experiment, by paper."""
    parts = []
    for paper, group in by_paper():
        parts.append(f"## {paper}\n\n[{group[0].paper.title}]({group[0].paper.url}), {group[0].paper.authors}.\n")
        parts += [section(e) for e in group]
    return "\n".join(parts)


def section(e: Experiment) -> str:
    """What the paper claims, what was measured and what differs; the claims; the figure; further runs."""
    stems, s = files_of(e), e.section
    parts = [f"### {e.name}\n", f"**{e.shows}.** {s.paper or e.about}\n"]
    if e.name not in stems:
        run = "Not run here." if not stems else "The whole table was not run here."
        parts += [f"**{run}** {s.different}\n", fence(f"nearid reproduce {e.name}")]
        return "\n".join([*parts, *further_runs(e, stems)])
    result = stored(e.name)
    if result.older:
        parts.append(
            "**These results are of an older version of the experiment.** Its claims are as they were judged then.\n"
        )
    drawing = "draws" if len(result.seeds) == 1 else "draw"
    seeds = counted(len(result.seeds), "seed") + (f" that {drawing} {e.seeds_draw}" if e.seeds_draw else "")
    took = f"{minutes(result)} core minute" + ("s" if core_minutes(result) >= 1.5 else "")
    took = took if core_minutes(result) else "time not stored"
    parts.append(f"**Measured** ({seeds}, {took}). {filled(s.measured, result)}".rstrip() + "\n")
    if s.different:
        parts.append(f"**Differences from the paper.** {filled(s.different, result)}\n")
    if drawn := figure(result):
        published = f" In the paper: {s.shown}" if s.shown else ""
        parts += [f"![{drawn.title}](pictures/papers/{e.name}.svg)\n", f"*{drawn.caption}{published}*\n"]
    claims = [[told(c), f"{MARKS[o.status][0]}&nbsp;{o.status}", _figure(c, o, result)] for c, o in result.outcomes]
    parts.append(table(["claim", "status", "figure; why it is not reproduced"], claims))
    parts.append(f"[Whole table](results/{e.name}.txt), [JSON](results/{e.name}.json). Run it again:\n")
    parts.append(fence(again(result)))
    return "\n".join([*parts, *further_runs(e, stems[1:])])


def _figure(claim: Claim, outcome: Outcome, result: StoredResult) -> str:
    """The figures that decided a claim, and why it is not reproduced."""
    why = reason(claim, outcome, result)
    return f"{outcome.figures}<br>*{why}*" if why else outcome.figures


def further_runs(e: Experiment, stems: list[str]) -> list[str]:
    """What further runs of an experiment gave, and their commands."""
    parts = []
    for stem in stems:
        result = stored(stem)
        begun = f"**{stem}** ([table](results/{stem}.txt), {counted(len(result.seeds), 'seed')}). "
        parts += [begun + filled(e.section.further.get(stem, ""), result) + "\n", fence(again(result))]
    return parts


def fence(line: str) -> str:
    """A command that the test of the pages does not run."""
    return f"<!-- not run: minutes to hours -->\n```sh\n{line}\n```\n"


def page(before: str) -> str:
    """The page with everything as it should be that is written by this program."""
    for name, made in (("scoreboard", scoreboard()), ("sections", sections())):
        begin, end = BLOCKS[name]
        head, rest = before.split(begin)
        before = head + begin + "\n" + made + "\n" + end + rest.split(end)[1]
    return before


def printed(stem: str) -> str:
    """The table of a result as a terminal shows it."""
    lines = text(stored(stem).view, WIDTH).splitlines()
    return "\n".join(line.rstrip() for line in lines) + "\n"


def judged(stem: str) -> str:
    """The file of a result with the claims as they are now; what was measured stays."""
    record = json.loads((RESULTS / f"{stem}.json").read_text(encoding="utf-8"))
    now = stored(stem).to_dict()
    if not stored(stem).older:
        record |= {"shows": now["shows"], "about": now["about"], "paper": now["paper"], "claims": now["claims"]}
    return json.dumps(record, indent=1, allow_nan=False) + "\n"


def pictures() -> dict[Path, str]:
    """The picture of each experiment."""
    made = {}
    for e in experiments():
        if e.name in files_of(e) and (drawn := figure(stored(e.name))):
            made[PICTURES / f"{e.name}.svg"] = picture(drawn).svg + "\n"
    return made


def everything() -> dict[Path, str]:
    """All files that this program writes, and what is in them."""
    stems = [stem for e in experiments() for stem in files_of(e)]
    made = {RESULTS / f"{stem}.json": judged(stem) for stem in stems}
    made |= {RESULTS / f"{stem}.txt": printed(stem) for stem in stems}
    return made | pictures() | {PAGE: page(PAGE.read_text(encoding="utf-8"))}


def store(result: Path) -> Path:
    """Store a result of a run in the place of the one before, and return its file."""
    record = json.loads(result.read_text(encoding="utf-8"))
    # Where the run wrote its files means nothing to others.
    record["provenance"]["command"] = read_result(result).recorded_command
    place = RESULTS / f"{record['experiment']}.json"
    place.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return place


if __name__ == "__main__":
    for new in sys.argv[1:]:
        store(Path(new))
    PICTURES.mkdir(parents=True, exist_ok=True)
    for place, content in everything().items():
        place.write_text(content, encoding="utf-8")
