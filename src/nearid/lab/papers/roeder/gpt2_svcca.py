"""Layers of GPT-2 that agree (Roeder, Metz and Kingma, Fig. 4): hidden states of language models of several sizes.

The last hidden state f and the vectors g of the words make p(word | those before) = softmax(g . f): the theorem is
about f, and says nothing of the layers before it. The paper compares gpt2, medium, large and xl on sentences of the
Penn Treebank, by their last hidden state and those 4, 8 and 12 layers before.

Models of this size cannot be trained here. In their place stand small ones of twelve layers, so that the same layers
can be compared, trained on WikiText-2 with its most frequent words: in the preset cpu two widths for a quarter of an
hour each, in the preset quick three smaller ones for a minute each. The stored result is of the preset quick until the
longer one has been run. Sentences go through a model one
by one, each after the sign that ends a line; words beyond the context are cut off. The first 2000 sentences have 48,498
words, of which 47,677 are compared: a context of 48 keeps 47 of a sentence. The paper's 55,034 are parts of words.

What to know of the figures:

- Equal words have equal embeddings in either model, so that layers agree without any training: about half at k = 16.
  The rows without training say how much; that is what the trained ones are to be compared with. Words that are
  shuffled in one of the models agree as little as columns of noise.
- The state 12 before the last is the embedding, of which the output vectors g are made (they are tied, as in GPT-2),
  so that the theorem has a say there, too.
- The last state is normalised, which leaves it one dimension less than its width: k = 31 is all that width 32 has. At
  k = 768, which the paper has too, the last direction of gpt2 is rounding.
- The proof builds the linear map between two models of one width from their heads alone. It is exact for equal
  likelihoods, of which training for a minute is far. Its R2 stands beside that of a fitted map.

With AdamW, a trial learnt much slower (cross-entropy 5.2 where Muon had 4.5 after 500 steps); six layers, tried before
twelve, hardly differed from each other. Both were chosen after trials of one pair each, as was the threshold of the
linear map's R2, which was .86 and .91 in them. Three claims were added after seed 0 of the run had been seen: that the
mean of the last and 4 before agrees more than 8 before, that it agrees more than 12 before, and that training adds more
to the last than to earlier ones. The first two were one at first, against the mean of 8 and 12 before; they were parted
after all seeds had been seen, as only 12 before, the embedding, had carried it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nearid.base.errors import InputError
from nearid.base.estimate import Estimate
from nearid.lab.framework.claims import Claim, Outcome, Status, Test, all_of, at_least, decide, exceeds
from nearid.lab.framework.experiment import ROEDER, Axes, CellData, Column, Curve, Experiment, Published, Row, presets
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.settings import Checked, parameter
from nearid.lab.papers.common.wikitext import SPLITS, Text, wikitext
from nearid.lab.papers.roeder import sections
from nearid.lab.papers.roeder.gpt2_states import (
    agreement,
    check_models,
    extracted,
    keyed,
    mean_agreement,
    named,
    pretrained_states,
    states_of,
    too_narrow,
    treebank,
)
from nearid.show.figures import Coordinates, Figure, Scatter

if TYPE_CHECKING:
    from nearid.lab.models.gpt import GPT


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
# What counts as a mean correlation that approaches 1, at the usual k.
APPROACHES = 0.9

# Numbers of components in the paper, and what its figure shows at the first of them.
PUBLISHED_KS, READ_OFF = (16, 64, 256, 768), (0.92, 0.81, 0.73, 0.57)
# Coordinates of a head of attention.
HEAD = 16
# Sentences of the Penn Treebank sample.
SAMPLE = 3914
# What to know of intervals of pretrained models.
SAME_MODELS = (
    f"Seeds of pretrained models draw sentences, of the same {SAMPLE}, for the same models: draws overlap, and their "
    "intervals are not over models."
)
GIVEN = "Hidden states that are given are of the same sentences at every seed: seed 0 alone has scores."


@dataclass(frozen=True)
class Parameters(Checked):
    """Parameters of the experiment on layers of language models; rows set widths, trained and pretrained."""

    widths: tuple[int, ...] = parameter(
        (64, 96),
        "widths of the models that are compared, all pairs of them",
        smoke=(32, 48),
        quick=(32, 48, 64),
        paper=(128, 192, 256),
    )
    trained: bool = parameter(True, "whether they are trained; rows set it")
    pretrained: bool = parameter(False, "whether a cell is of pretrained models instead; rows set it")
    models: str = parameter("", f"pretrained models: folders or names on the hub, such as {PRETRAINED}")
    depth: int = parameter(12, "blocks of a model", least=max(BACK))
    vocabulary: int = parameter(4000, "most frequent words that are told apart", least=100, smoke=200, paper=8000)
    context: int = parameter(48, "words that a model reads at a time", least=2, smoke=12, paper=64)
    text: str = parameter("train", "split of WikiText-2 to learn from: train or valid", choices=SPLITS, smoke="valid")
    sentences: int = parameter(2000, "first sentences of the Penn Treebank sample", least=20, most=SAMPLE, smoke=40)
    held_out: int = parameter(20_000, "held-out words for the cross-entropy", least=lambda p: p.context + 1, smoke=500)
    components: tuple[int, ...] = parameter(
        (2, 4, 8, 16, 32, 63), "numbers k of leading components, with 16", smoke=(4, 16), quick=(2, 4, 8, 16, 24, 31)
    )
    steps: int = parameter(5000, "steps of Muon", least=1, smoke=2, quick=300, paper=20_000)
    batch: int = parameter(21, "rows of text in each step, as long as the context", least=1, smoke=4, paper=32)
    rate: float = parameter(2e-3, "learning rate, which falls to 0", positive=True)
    looks: int = parameter(3, "times that the cross-entropy is looked at during training", least=1, smoke=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.widths) < 2 or any(width % HEAD or width < 1 for width in self.widths):
            raise InputError(f"At least 2 widths are needed, all multiples of {HEAD}, not {list(self.widths)}.")
        ks = self.components
        if MODERATE not in ks or list(ks) != sorted(set(ks)) or ks[0] < 1 or ks[-1] >= min(self.widths):
            # The last state has a dimension less than its width.
            raise InputError(
                f"The components must be different, in order, below the least width {min(self.widths)}, with "
                f"{MODERATE} among them, not {list(ks)}."
            )
        if self.models:
            named(self.models)


def cell(p: Parameters, seed: int, folder: Path) -> CellData:
    """Models from different starts and batches, all pairs compared layer by layer."""
    if p.pretrained:
        return _pretrained(p, seed, folder) if p.models else {"scores": {}}
    text, held = wikitext(p.text, p.vocabulary), treebank()[: p.sentences]
    models, curves, losses = list[Any](), dict[str, Curve](), list[float]()
    for k, start in enumerate(np.random.SeedSequence(seed).generate_state(len(p.widths))):
        model, its_curves = _model(p, p.widths[k], int(start), text, folder / f"model{k}")
        models.append(model)
        curves = curves or its_curves
        losses.append(_loss(model, p, text))
    states = [states_of(model, text.vocabulary, held) for model in models]
    by_layer = [mean_agreement(layer, p.components) for layer in zip(*states, strict=True)]
    table = np.asarray(by_layer[::-1]).T
    order = np.random.default_rng(seed).permutation(len(states[0][0]))
    scores = layer_scores(table, p.components) | {
        "shuffled": agreement(states[0][-1], states[1][-1][order], [MODERATE])[0],
        "loss": float(np.mean(losses)),
        **_maps(models, [s[-1] for s in states], seed),
    }
    return {"scores": scores, "curves": curves, "views": {"components": list(p.components), "layers": _told(table)}}


def _model(p: Parameters, width: int, seed: int, text: Text, folder: Path) -> tuple[GPT, dict[str, Curve]]:
    from nearid.lab.framework.training import trained
    from nearid.lab.models.gpt import GPT
    from nearid.lab.models.trainer import seeded

    with seeded(seed):
        model = GPT(p.vocabulary, width, p.depth, width // HEAD, p.context)
    if not p.trained:
        return model.eval(), {}
    stream, places = text.learnt, np.arange(p.context + 1)

    def batches(rng: np.random.Generator) -> tuple[np.ndarray]:
        return (stream[rng.integers(0, len(stream) - p.context, p.batch)[:, None] + places],)

    def look(_: object) -> dict[str, float]:
        return {"held_out": _loss(model, p, text)}

    options: dict[str, Any] = {"optimiser": "muon", "warmup": min(p.steps // 4, 50)}
    return model, trained(model, batches, p, seed, folder, score=look, **options)


def _loss(model: GPT, p: Parameters, text: Text) -> float:
    """Cross-entropy of held-out words, in nats."""
    import torch

    rows = min(p.held_out, len(text.unseen)) // (p.context + 1)
    ids = torch.as_tensor(text.unseen[: rows * (p.context + 1)].reshape(rows, -1)).long()
    with torch.no_grad():
        return float(model(ids))


def _maps(models: Sequence[GPT], last: Sequence[np.ndarray], seed: int) -> dict[str, float]:
    """R2 of linear maps between last states, held out: fitted, and built from the heads of models of one width."""
    from nearid.geometry.transforms import compare_transforms

    heads = [model.head.detach().numpy() for model in models]
    pairs = [
        compare_transforms((heads[a], heads[b]), (last[a], last[b]), ridge=0, random_state=seed)
        for a, b in combinations(range(len(models)), 2)
        if heads[a].shape == heads[b].shape
    ]
    told = {"r2": [f.r2_fitted for f in pairs], "r2_heads": [f.r2_heads for f in pairs if f.r2_heads is not None]}
    return {name: float(np.mean(values)) for name, values in told.items() if values}


def _pretrained(p: Parameters, seed: int, folder: Path) -> CellData:
    """The paper's own comparison; its first sentences at seed 0, as many drawn from all at others.

    States that are given are not drawn anew: they have no other seeds.
    """
    names = named(p.models)
    if seed and extracted(p.models):
        return {"scores": {}}
    held = treebank()
    chosen = np.arange(len(held)) if seed == 0 else np.random.default_rng(seed).permutation(len(held))
    by_layer, ks = list[list[float]](), list[int]()
    for states in pretrained_states(names, [held[k] for k in chosen[: p.sentences]], BACK, folder):
        widths = [s.shape[1] for s in states]
        if min(widths) < MODERATE:
            raise InputError(too_narrow(names[int(np.argmin(widths))], min(widths), MODERATE))
        ks = [k for k in PUBLISHED_KS if k <= min(widths)]
        by_layer.append(mean_agreement(states, ks))
    table = np.asarray(by_layer).T
    return {"scores": layer_scores(table, ks), "views": {"components": ks, "layers": _told(table)}}


def _told(table: np.ndarray) -> list[list[float]]:
    told: list[list[float]] = table.round(4).tolist()
    return told


def rows(p: Parameters) -> list[Row]:
    """One model of each width, two of the middle one, both without training, and the paper's own."""
    middle = sorted(p.widths)[len(p.widths) // 2]
    across, same = " and ".join(map(str, p.widths)), {"widths": (middle, middle)}
    read = "Read off Fig. 4 at k = 16, which has no table."
    published = {f"back{back}": Published(value, note=read) for back, value in zip(BACK, READ_OFF, strict=True)}
    names = named(p.models or PRETRAINED)
    shown = published if names == named(PRETRAINED) else {}
    given = ", ".join(names) if p.models else f"pretrained GPT-2 (--set models={PRETRAINED})"
    own = keyed(p.models) if p.models else {}
    note = (GIVEN if extracted(p.models) else SAME_MODELS) if p.models else ""
    return [
        Row("widths", f"widths {across}, all pairs"),
        Row("same", f"width {middle}, two runs", same),
        Row("widths-untrained", f"widths {across}, untrained", {"trained": False}),
        Row("same-untrained", f"width {middle}, untrained", {"trained": False, **same}),
        Row("pretrained", given, {"pretrained": True, **own}, shown, note=note),
    ]


def _ready(p: Parameters) -> None:
    if p.models:
        check_models(p.models, BACK, MODERATE)


def _datasets(p: Parameters) -> Sequence[str]:
    return ("treebank",) if p.pretrained else ("wikitext2", "treebank")


def layer_scores(table: np.ndarray, ks: Sequence[int]) -> dict[str, float]:
    """Scores from the agreement at each k (rows) and layer, counted back from the last (columns).

    The columns are all layers, or those of BACK alone.
    """
    places = BACK if table.shape[1] > len(BACK) else range(len(BACK))
    usual = table[ks.index(MODERATE)]
    scores = {f"back{back}": float(usual[at]) for back, at in zip(BACK, places, strict=True)}
    scores |= {"most0": float(table[-1, places[0]]), "most4": float(table[-1, places[1]])}
    leads = [k for k, row in zip(ks, table, strict=True) if all(row[0] > row[at] for at in places[1:])]
    return scores | {"leads": float(max(leads, default=0))}


def _last_leads(row: str) -> Test:
    return all_of(*(exceeds((row, "back0"), (row, f"back{back}")) for back in BACK[1:]))


def _later_lead(back: int) -> Test:
    """The mean of the last and 4 before against an earlier one."""
    return all_of(*(_signed(row, {0: 0.5, 4: 0.5, back: -1.0}) for row in TRAINED))


def _signed(row: str, weights: Mapping[int, float], *, gain: bool = False) -> Test:
    """Whether a weighted sum over layers is above 0, of their agreement or of what training adds to it."""
    rows = [row, f"{row}-untrained"] if gain else [row]
    more, less = (
        " and ".join(f"-{back}" if back else "last" for back, weight in weights.items() if sign * weight > 0)
        for sign in (1, -1)
    )
    label = f"{'gain of ' if gain else ''}{'mean of ' * (' and ' in more)}{more} minus {less}, row {row}"

    def test(result: ExperimentResult) -> Outcome:
        sums: dict[int, float] = {}
        for seed in result.scores(row, "back0"):
            for back, weight in weights.items():
                held = [result.scores(key, f"back{back}").get(seed, np.nan) for key in rows]
                sums[seed] = sums.get(seed, 0.0) + weight * (held[0] - held[1] if gain else held[0])
        known = Estimate.over([v for v in sums.values() if np.isfinite(v)])
        return decide(result, rows, known, 0.0, label, above=True)

    return test


def _published_models(result: ExperimentResult) -> Outcome:
    if not result.parameters.models:
        how = (
            f"Needs the pretrained models: --row pretrained --set models={PRETRAINED} gets them from the hub (9 GB; "
            "pip install 'nearid[hf]'), or names folders that hold them."
        )
        return Outcome(Status.NOT_TESTABLE, how)
    return _last_leads("pretrained")(result)


def figures(result: ExperimentResult) -> Sequence[Figure]:
    """Agreement over layers, the mean over seeds: of every row at the usual k, then of each row at every k."""
    told = "Mean canonical correlation of the k leading components, averaged over pairs and seeds; 0 is the last."
    usual, single = dict[str, Coordinates](), list[Figure]()
    for row in result.rows:
        held = [f.data["views"] for f in result.of_row(row.key) if "views" in f.data]
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
    Claim(f"Models of several widths: the last hidden state agrees more than {EARLIER}.", _last_leads("widths")),
    Claim("So it does in models of one width.", _last_leads("same"), added=True),
    Claim(
        f"The mean of the last and 4 before agrees more than 8 before (k = {MODERATE}).",
        _later_lead(8),
        added=True,
        late=True,
    ),
    Claim("It agrees more than 12 before, the embedding.", _later_lead(12), added=True, late=True),
    Claim(
        f"Training adds more to the agreement of the last hidden state than to {EARLIER}.",
        all_of(*(_signed(row, {0: 1.0, back: -1.0}, gain=True) for row in TRAINED for back in BACK[1:])),
        added=True,
        late=True,
    ),
    Claim(
        f"Training makes the last hidden state agree more than it does untrained (by {CLEARLY}).",
        all_of(*(exceeds((r, "back0"), (f"{r}-untrained", "back0"), by=CLEARLY) for r in TRAINED)),
        added=True,
    ),
    Claim(
        "A linear map carries the last hidden state of one run to that of another of the same width (held out, R2 at "
        f"least {CARRIED}).",
        at_least("same", "r2", CARRIED),
    ),
    Claim(
        f"The mean canonical correlation of the last hidden states approaches 1 (at least {APPROACHES:g} at "
        f"k = {MODERATE}; about {READ_OFF[0]:g} in the figure).",
        at_least("widths", "back0", APPROACHES),
        late=True,
    ),
    Claim(
        "At the largest k the last hidden state is not the best (read off the figure): the one 4 before agrees more.",
        exceeds(("widths", "most4"), ("widths", "most0")),
        late=True,
    ),
    Claim(f"The pretrained GPT-2: the last hidden state agrees more than {EARLIER}.", _published_models),
)


GPT2_SVCCA = Experiment(
    name="gpt2-svcca",
    paper=ROEDER,
    shows="Fig. 4",
    section=sections.GPT2_SVCCA,
    about="The last hidden states of independently trained language models agree up to a linear map, more than earlier "
    "layers do.",
    defaults=Parameters(),
    presets=presets(
        cpu=("about 3 hours of one core (estimated)", 3),
        paper=("a day on 2 cores (estimated); the paper's own row needs --set models=...", 4),
        quick=("about 16 minutes of one core", 4),
    ),
    columns=COLUMNS,
    rows=rows,
    cell=cell,
    claims=CLAIMS,
    curves=(
        Axes("held_out", "Cross-entropy during training, first model of a cell", "steps", "nats for a word, held out"),
        Axes("loss", "Loss during training, first model of a cell", "steps", "nats for a word"),
    ),
    figures=figures,
    datasets=_datasets,
    ready=_ready,
)
