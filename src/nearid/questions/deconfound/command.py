"""`nearid deconfound`."""

from nearid.show.command import Question

QUESTION = Question(
    "nearid.questions.deconfound.run:deconfound",
    {"X": "X"},
    required=("labels", "batches"),
    page="guide/deconfound",
    examples=(
        "nearid deconfound profiles.csv --labels drug --batches plate",
        "nearid deconfound x.npy --meta wells.csv --labels drug --batches plate",
        "nearid deconfound cells.h5ad --labels gene --batches donor --blocks well",
    ),
)
