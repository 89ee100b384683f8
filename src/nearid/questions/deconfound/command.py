"""`nearid deconfound`."""

from nearid.show.command import Question

QUESTION = Question(
    "nearid.questions.deconfound.run:deconfound",
    {"X": "X"},
    required=("labels", "batches"),
    short={"out": "-o"},
    done=lambda options: (
        f"Cleaned rows written to {options['out']}" if options["out"] and not options["dry_run"] else ""
    ),
    page="guide/deconfound",
    examples=(
        "nearid deconfound profiles.csv --labels drug --batches plate",
        "nearid deconfound x.npy --meta wells.csv --labels drug --batches plate",
        "nearid deconfound profiles.csv --labels drug --batches plate -o cleaned.csv",
        "nearid deconfound cells.h5ad --labels gene --batches donor --blocks well",
    ),
)
