"""`nearid unmix`: independent components of a file, the model that gives them, and whether to trust it."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from nearid.show.command import Question


def _left(options: Mapping[str, Any]) -> str:
    from nearid.questions.unmix.run import left_behind

    return left_behind(Path(options["out"]))


def _formats() -> Iterable[str]:
    from nearid.arrays.formats.registry import writable_names

    return writable_names()


QUESTION = Question(
    "nearid.questions.unmix.run:unmix",
    {"x": "X"},
    summary="Find the independent components of rows by whitening and ICA. Write them and the fitted model.",
    choices={"format": _formats},
    paths="x",
    short={"out": "-o"},
    required=("out",),
    makes="out",
    left=_left,
    page="guide/unmix",
    examples=(
        "nearid unmix embeddings.npy -o ica --stability 2",
        "nearid unmix cells.parquet -o ica --features 'emb_*' --n-components 20",
    ),
    texts={
        "out": "Folder for the components and the model. nearid makes it.",
        "n_components": "Number of leading principal components to unmix. Default: all that exist.",
        "whiten": "Whiten the rows first. --no-whiten looks for a rotation of the centred rows instead.",
        "contrast": "Function that measures how far a component is from Gaussian. exp is robust to outliers. cube is "
        "the kurtosis. auto tries logcosh and exp on half of the rows and takes the one whose estimates vary less.",
        "tol": "The search stops at this relative projected gradient. float32 cannot resolve much below 1e-6.",
        "max_passes": "Largest number of passes over the rows for one start.",
        "starts": "Number of random rotations to start from. The best one is followed to the end. With more than 2^23 "
        "numbers, nearid tries them on a part of the rows.",
        "stability": "Number of further fits to random halves of the rows, which show the components that are stable. "
        "Each one costs about half of the fit.",
        "blocks": "Rows that belong together, such as the cells of a well: a column (or entry) of the file, or a file "
        "with one label per row. --stability then halves whole blocks. none takes all rows as independent. Default: "
        "the blocks that extract wrote for tokens, if any.",
        "dtype": "Precision of the products. Sums are always float64. Default: that of the rows.",
        "format": "Format of the components.",
    },
    done=lambda options: f"Components and model written to {options['out']}",
)
