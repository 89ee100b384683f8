"""Word vectors of two runs (Roeder, Metz and Kingma, Fig. 1): the same up to a linear map.

A log-bilinear model (Mnih and Teh): the two words before a gap and the two after it, each times a weight for its place,
sum up to a vector f, and the word in the gap has the probability softmax(<f, q> + b). Two runs of it differ in their
start, in the text they see and in the noise they are told the words from.

The theorem speaks of f, here on held-out contexts, and of the vectors q of the words, which are given up to an affine
map: the bias takes up the rest. Rare words are seen too seldom to have left their start: only the most frequent ones
are compared.

Noise-contrastive estimation normalises only approximately, and the theorem is about normalised probabilities: the
table tells how far their sum is from 1 (its logarithm, mean and deviation over contexts).

The paper has the Billion Word corpus in 8k parts of words, this WikiText-2 in whole words, a four-hundredth of it. The
text of the paper that was at hand does not say how the model is started or trained; the presets cpu and paper take what
was reported of the authors' program: vectors that are uniform within .001 of 0 at the start, a learning rate of .003
and 50,000 steps, one start for each run. The optimiser was not reported: Adam is taken, for which that rate is usual.

The preset quick is an older recipe, found by trials, which the stored result is of until the longer one has been run.
In the plane the start matters, as the loss has several minima. In a trial of eight runs by Adam, contexts agreed at .96
to .99 within two groups of three and four runs, at .56 to .71 between these, and the losses of both groups were the
same. By stochastic gradient descent from small vectors five of eight runs agreed at .99, and these had the least
losses. So of several starts the one with the least loss on the text it learnt from counts, as the theorem is about the
best model. Trials that went on for more than twice as long stayed where they were but for one of six, which found a
lower minimum. The optimiser, the start and the number of steps of that preset were chosen after these trials. The
thresholds are older: they were chosen after trials of one pair each with a first recipe (Adam, 8000 words; mean CCA of
f .48 to .87), and stayed when it was replaced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nearid.lab.framework.claims import Claim, all_of, at_least, at_most, exceeds
from nearid.lab.framework.experiment import ROEDER, Axes, CellData, Column, Curve, Experiment, Row, presets
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.settings import Checked, parameter
from nearid.lab.papers.common.correlation import plain_cca
from nearid.lab.papers.common.wikitext import SPLITS, wikitext
from nearid.lab.papers.roeder import sections
from nearid.moments import Floats
from nearid.show.figures import Figure, Scatter

if TYPE_CHECKING:
    from nearid.lab.models.log_bilinear import LogBilinear

Ids = NDArray[np.int32]
# Where the words around a gap are.
AROUND = np.array([-2, -1, 1, 2])
# Contexts for the cross-entropy and the normalisation, which take a score of every word.
NORMALISED = 2000
# Gaps of the text on which losses are compared.
JUDGED = 10_000
# Words and contexts in the pictures, and words that are named in them.
SHOWN, NAMED = 300, 40
# Dimensions of the paper's picture.
PLANE = 2
# Mean canonical correlations that count as overlap, in the plane (two thirds of the variance are shared) and beyond
# (half of it), and that do not count (a quarter).
OVERLAP, SHARED, APART = 0.8, 0.7, 0.5


@dataclass(frozen=True)
class Parameters(Checked):
    """Parameters of the experiment on word vectors; rows set dimensions and trained."""

    dimensions: int = parameter(PLANE, "coordinates of a vector; rows set it", least=2)
    more: int = parameter(8, "coordinates in the rows with more of them", least=3, smoke=3, paper=64)
    trained: bool = parameter(True, "whether the models are trained; rows set it")
    starts: int = parameter(1, "starts of each run; the one with the least loss counts", least=1, smoke=2, quick=4)
    spread: float = parameter(
        0.001, "vectors are uniform within it at the start; 0 for normal ones", least=0, smoke=0.0, quick=0.0
    )
    vocabulary: int = parameter(
        2000, "most frequent words told apart", least=lambda p: p.frequent + 2, smoke=300, paper=8000
    )
    text: str = parameter("train", "split of WikiText-2 to learn from: train or valid", choices=SPLITS, smoke="valid")
    noise: int = parameter(25, "words of noise for each right one", least=1, smoke=5)
    frequent: int = parameter(1000, "most frequent words, compared by five folds", least=50, smoke=100, paper=2000)
    held_out: int = parameter(20_000, "held-out contexts on which f is compared, by five folds", least=50, smoke=300)
    optimiser: str = parameter("adam", "adam, or sgd with momentum", choices=("adam", "sgd"), smoke="sgd", quick="sgd")
    steps: int = parameter(50_000, "steps of the optimiser", least=10, smoke=10, quick=300)
    batch: int = parameter(256, "gaps in each step", least=1, smoke=64, quick=2048, paper=2048)
    rate: float = parameter(3e-3, "learning rate, which falls to 0", positive=True, smoke=1.0, quick=1.0)
    looks: int = parameter(10, "times that the runs are compared during training, a multiple of 10", multiple=10)

    # One of the looks falls at a tenth of the steps.


def gaps(stream: Ids, rows: int, rng: np.random.Generator) -> tuple[Ids, Ids]:
    """Words around random gaps of a text, of shape (rows, 4), and the words in them."""
    at = rng.integers(-AROUND[0], len(stream) - AROUND[-1], rows)
    return stream[at[:, None] + AROUND], stream[at]


def draw(stream: Ids, rows: int, noise: int, rng: np.random.Generator) -> tuple[Ids, Ids, Ids]:
    """Random gaps, and noise for each: a word at a random place is drawn by its frequency."""
    return *gaps(stream, rows, rng), stream[rng.integers(0, len(stream), (rows, noise))]


def cell(p: Parameters, seed: int, folder: Path) -> CellData:
    """Two runs from different starts, contexts and noise, compared on the same held-out text."""
    import torch

    from nearid.lab.framework.training import trained
    from nearid.lab.models.log_bilinear import LogBilinear
    from nearid.lab.models.trainer import Together, seeded

    text = wikitext(p.text, p.vocabulary)
    held, order, *starts = (int(s) for s in np.random.SeedSequence(seed).generate_state(2 + 2 * p.starts))
    rng = np.random.default_rng(held)
    around, inside = gaps(text.unseen, p.held_out, rng)
    known = [torch.as_tensor(array).long() for array in draw(text.learnt, JUDGED, p.noise, rng)]
    counts = torch.as_tensor(np.bincount(text.learnt, minlength=len(text.vocabulary)).clip(min=1))
    models: list[LogBilinear] = []
    for start in starts:
        with seeded(start):
            models.append(LogBilinear(counts, p.dimensions, len(AROUND), p.spread))

    def batches(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        return tuple(array for _ in models for array in draw(text.learnt, p.batch, p.noise, rng))

    def best() -> list[LogBilinear]:
        """Of the starts of either run the one with the least loss, on the same words and noise for all."""
        with torch.no_grad():
            losses = [float(model(*known)) for model in models]
        return [models[run + int(np.argmin(losses[run : run + p.starts]))] for run in (0, p.starts)]

    def compared(_: object) -> dict[str, float]:
        return {f"cca_{name}": _cca(*pair) for name, pair in _vectors(best(), around, p.frequent).items()}

    curves = {}
    if p.trained:
        options: dict[str, Any] = {"optimiser": p.optimiser, "warmup": min(p.steps // 4, 20)}
        curves = trained(Together(*models), batches, p, order, folder, score=compared, **options)
    chosen = best()
    vectors = _vectors(chosen, around, p.frequent)
    early = {f"early_{name}": _after(curves[f"cca_{name}"], p.steps / 10) for name in vectors} if curves else {}
    scores = {
        **{f"cca_{name}": _cca(*pair) for name, pair in vectors.items()},
        **early,
        **{f"r2_{name}": _r2(*pair, seed) for name, pair in vectors.items()},
        **_normalisation(chosen[0], around[:NORMALISED], inside[:NORMALISED]),
    }
    return {"scores": scores, "curves": curves, "views": _views(vectors, text.vocabulary.words, around)}


def _after(curve: Curve, step: float) -> float:
    """The value at the look that is nearest to a step."""
    return curve["y"][int(np.argmin(np.abs(np.subtract(curve["x"], step))))]


def _vectors(models: Sequence[LogBilinear], around: Ids, frequent: int) -> dict[str, tuple[Floats, Floats]]:
    """What two runs make of the same contexts (f) and of the same frequent words (q)."""
    import torch

    contexts = torch.as_tensor(around).long()
    with torch.no_grad():
        f = [m.encode(contexts).double().numpy() for m in models]
        # The first two numbers stand for no words.
        q = [m.target.weight[2 : 2 + frequent].double().numpy() for m in models]
    return {"f": (f[0], f[1]), "q": (q[0], q[1])}


def _cca(first: Floats, second: Floats) -> float:
    return plain_cca(first, second).value


def _r2(first: Floats, second: Floats, seed: int) -> float:
    """Share of the second run's variance that a linear map of the first explains, held out."""
    from nearid.questions.compare.run import compare

    comparison = compare(first, second, groups=("linear",), ridge=0, blocks="none", permutations=1, random_state=seed)
    return float(comparison.groups["linear"].r2.value)


def _normalisation(model: LogBilinear, around: Ids, inside: Ids) -> dict[str, float]:
    """Cross-entropy of held-out words under the softmax, and the logarithm of the sum that it divides by."""
    import torch

    with torch.no_grad():
        scores = model.log_scores(torch.as_tensor(around).long())
        totals = scores.logsumexp(dim=1)
        right = scores.gather(1, torch.as_tensor(inside).long()[:, None]).squeeze(1)
    return {"loss": float((totals - right).mean()), "log_sum": float(totals.mean()), "spread": float(totals.std())}


def _views(vectors: Mapping[str, tuple[Floats, Floats]], words: Sequence[str], around: Ids) -> dict[str, Any]:
    """The first two coordinates of either run, and of the first one after the linear map, with their names."""
    names = {
        "q": list(words[2 : 2 + SHOWN]),
        "f": [f"{words[a]} {words[b]} _ {words[c]} {words[d]}" for a, b, c, d in around[:SHOWN]],
    }
    told: dict[str, Any] = {}
    for name, (first, second) in vectors.items():
        with_one = np.column_stack([first, np.ones(len(first))])
        mapped = with_one @ np.linalg.lstsq(with_one, second, rcond=None)[0]
        points = {"first": first, "second": second, "mapped": mapped}
        told[name] = {key: x[:SHOWN, :PLANE].round(4).tolist() for key, x in points.items()}
        told[name]["names"] = names[name][: len(first)]
    return told


def rows(p: Parameters) -> list[Row]:
    """The plane of the paper's picture and more dimensions, trained and not."""
    return [
        Row(
            f"{key}{suffix}",
            f"{n} dimensions{', untrained' if suffix else ''}",
            {"dimensions": n, "trained": not suffix},
        )
        for suffix in ("", "-untrained")
        for key, n in (("plane", PLANE), ("more", p.more))
    ]


def figures(result: ExperimentResult) -> Sequence[Figure]:
    """The first seed of the plane: words and contexts of two runs, before and after the linear map."""
    slots: list[Figure] = []
    for finished in result.of_row("plane")[:1]:
        for key, what in (("q", "words"), ("f", "contexts")):
            v = finished.data["views"][key]
            for mapped in (False, True):
                one = "first run, after the linear map" if mapped else "first run"
                points = {one: v["mapped" if mapped else "first"], "second run": v["second"]}
                slots.append(
                    Scatter(
                        f"Two runs: {what} {'after' if mapped else 'before'} the linear map",
                        f"The first {SHOWN} {what} of seed 0; point at one to read it. Where the runs agree, the "
                        "linear map brings both points of a name together.",
                        "first coordinate",
                        "second coordinate",
                        {name: ([x for x, _ in at], [y for _, y in at]) for name, at in points.items()},
                        {},
                        dict.fromkeys(points, v["names"]),
                        NAMED if key == "q" else 0,
                    )
                )
    return slots


WORDS = Experiment(
    name="words",
    paper=ROEDER,
    shows="Fig. 1",
    section=sections.WORDS,
    about="The word vectors of two runs of a log-bilinear model overlap after a linear map.",
    defaults=Parameters(),
    presets=presets(
        cpu=("about 100 minutes of one core (estimated)", 10),
        paper=("a day on a CPU (estimated)", 10),
        quick=("about 5 minutes of one core", 5),
    ),
    columns=(
        Column("cca_f", "mean CCA of contexts f", least=-1, most=1),
        Column("cca_q", "mean CCA of words q", least=-1, most=1),
        Column("early_f", "f after a tenth of the steps", least=-1, most=1),
        Column("early_q", "q after a tenth of the steps", least=-1, most=1),
        Column("r2_f", "R2 of a linear map of f", most=1),
        Column("r2_q", "R2 of a linear map of q", most=1),
        Column("loss", "cross-entropy, held out", least=0),
        Column("log_sum", "log of the sum of probabilities"),
        Column("spread", "its deviation", least=0),
    ),
    rows=rows,
    cell=cell,
    claims=(
        Claim(
            f"In the plane two runs overlap after a linear map: contexts and words (mean CCA at least {OVERLAP}).",
            all_of(*(at_least("plane", column, OVERLAP) for column in ("cca_f", "cca_q"))),
        ),
        Claim(
            f"So do contexts in more dimensions (mean CCA at least {SHARED}).",
            at_least("more", "cca_f", SHARED),
            added=True,
        ),
        Claim(
            "Training brings runs nearer: they agree more at its end than after its first tenth.",
            all_of(*(exceeds((row, f"cca_{v}"), (row, f"early_{v}")) for row in ("plane", "more") for v in ("f", "q"))),
            added=True,
        ),
        Claim(
            f"Untrained models do not overlap (mean CCA at most {APART}).",
            all_of(*(at_most(f"{row}-untrained", f"cca_{v}", APART) for row in ("plane", "more") for v in ("f", "q"))),
            added=True,
        ),
    ),
    curves=(
        Axes("cca_f", "Agreement of contexts during training", "steps", "mean CCA of f, held out"),
        Axes("cca_q", "Agreement of words during training", "steps", "mean CCA of q, held out"),
        Axes("loss", "Loss during training, all starts of both runs", "steps", "noise-contrastive loss"),
    ),
    figures=figures,
    datasets=lambda p: ("wikitext2",),
)
