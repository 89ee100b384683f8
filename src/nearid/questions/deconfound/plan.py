"""The options of an evaluation and their choices."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from nearid.base.options import listed


class Titles(dict[str, str]):
    """Titles by name; a name that a user gave is its own title."""

    def __missing__(self, name: str) -> str:
        return name


# Corrections by controls.
CORRECTIONS = {"centre": "Centred", "sphere": "Sphered", "tvn": "TVN"}
# Names of the conditions that `drop` makes of cleaned rows, by the condition whose map of them they are. The first of
# these that is evaluated is judged: Base of cleaned rows are the columns that `out` writes.
KEPT = {"base": "kept_base", "ica": "kept", "pca": "kept_pca"}
# Conditions, classifiers and directions by name, with their titles.
CONDITIONS = Titles(
    {
        "base": "Base",
        "pca": "PCA",
        "random": "PCA + random rotation",
        "ica": "PCA + ICA",
        "kept": "PCA + ICA of cleaned rows",
        "kept_base": "Base of cleaned rows",
        "kept_pca": "PCA of cleaned rows",
        **CORRECTIONS,
    }
)
# What the components of a condition are called; those of other conditions are columns.
COMPONENTS = {
    "pca": "principal component",
    "random": "rotated component",
    "ica": "independent component",
    "kept": "cleaned component",
    "kept_base": "cleaned column",
    "kept_pca": "cleaned component",
}
CLASSIFIERS = {"boost": "LightGBM", "logistic": "logistic regression"}
DIRECTIONS = {"most": "train on most batches", "one": "train on one batch"}


@dataclass(frozen=True)
class Plan:
    """Options of an evaluation; each field is the option of `nearid.deconfound` with this name, defaults filled in."""

    conditions: tuple[str, ...]
    classifiers: tuple[str, ...]
    directions: tuple[str, ...]
    folds: int
    perturbations: Sequence[Any] | str | int | None
    top: Sequence[int]
    drop: int | float | Literal["auto"] | None
    n_components: int | None
    fit_rows: int | None
    min_rows: int | None
    max_rows: int
    boosting: Mapping[str, Any]
    nonfinite: str
    random_state: int
    rotations: int = 2
    control: Any = None
    features: list[str] | str | None = None
    exclude: list[str] | str | None = None
    key: str | None = None
    also: tuple[str, ...] = ()
    position: Any = None

    @property
    def cleaned(self) -> str | None:
        """The condition whose map cleaned rows get, so that classifiers judge them; None where they are not judged so.

        One training batch does not show batch effects, so that cleaning needs the direction "most".
        """
        if self.drop is None or "most" not in self.directions:
            return None
        return next((name for name in KEPT if name in self.conditions), None)


def named(given: Iterable[str] | str, what: str, known: Iterable[str]) -> tuple[str, ...]:
    """Check names against the known ones and return them in order; they may be a list or a text with commas."""
    wanted = listed(given, what, known)
    return tuple(name for name in known if name in wanted)
