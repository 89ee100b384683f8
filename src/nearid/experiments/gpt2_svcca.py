"""Layers of GPT-2 that agree (Roeder, Metz and Kingma, Fig. 4): the last hidden states of language models of several sizes.

The last hidden state f and the vectors g of the words make p(word | those before) = softmax(g . f): the theorem is about
f, and says nothing of the layers before it. The paper compares gpt2, medium, large and xl on sentences of the Penn
Treebank, by their last hidden state and those 4, 8 and 12 layers before.

Models of this size cannot be trained here. In their place stand small ones of twelve layers, whose hidden states 0 to 12
before the last are the same choice, trained for some minutes on WikiText-2 with its most frequent words. Sentences go
through a model one by one, each after the sign that ends a line; words beyond the context are cut off.

What to know of the figures:

- Equal words have equal embeddings in either model, so that layers agree without any training: more than half at k = 16.
  The rows without training say how much; that is what the trained ones are to be compared with. Tokens that are shuffled
  in one of the models agree as little as columns of noise.
- The state 12 before the last is the embedding, of which the output vectors g are made (they are tied, as in GPT-2), so
  that the theorem has a say there, too.
- The last state is normalised, which leaves it one dimension less than its width.
- k = 16 is the paper's smallest and here a third of the width; k = 31 is all that the narrowest model has.
- The proof builds the linear map between two models of one width from their heads alone. It is exact for equal
  likelihoods, of which training for minutes is far. Its R2 stands beside that of a fitted map.

With Adam alone, trials learnt much slower (cross-entropy 5.3 where Muon had 4.5 after 500 steps), and six layers instead
of twelve hardly differed from each other. Both were chosen after these trials, each of one pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nearid.errors import InputError
from nearid.experiments.base import Axes, CellData, Column, Curve, Experiment, Preset, Published, Row
from nearid.experiments.claims import Claim, Outcome, Status, all_of, at_least, exceeds
from nearid.experiments.figures import Scatter, Slot
from nearid.experiments.gpt2_states import agreement, mean_agreement, pretrained_states, states_of
from nearid.experiments.papers import ROEDER
from nearid.experiments.settings import check, parameter

if TYPE_CHECKING:
    from nearid.experiments.result import Result
    from nearid.models.gpt import GPT

# Layers of the paper, counted back from the last, and its numbers of components.
BACK, PUBLISHED_KS = (0, 4, 8, 12), (16, 64, 256, 768)
# The k of the table, and what the paper's figure shows there.
MODERATE = 16
READ_OFF = (0.92, 0.81, 0.73, 0.57)
PRETRAINED = "gpt2,gpt2-medium,gpt2-large,gpt2-xl"
# Coordinates of a head of attention.
HEAD = 16
# Words of held-out text for the cross-entropy, in rows of the context.
HELD_OUT = 20_000
# What training must add to the agreement of the last layer to be seen at once, and the share of its variance that a
# linear map must carry over: all but a fifth.
CLEARLY, CARRIED = 0.1, 0.8


@dataclass(frozen=True)
class Parameters:
    """Parameters of the experiment on layers of language models; rows set widths, trained and pretrained."""

    widths: tuple[int, ...] = parameter((32, 48, 64), "widths of the models that are compared, all pairs of them")
    trained: bool = parameter(True, "whether they are trained; rows set it")
    pretrained: bool = parameter(False, "whether a cell is of pretrained models instead; rows set it")
    models: str = parameter("", f"pretrained models: folders or names on the hub, such as {PRETRAINED}")
    depth: int = parameter(12, "blocks of a model")
    vocabulary: int = parameter(4000, "most frequent words that are told apart")
    context: int = parameter(48, "words that a model reads at a time")
    text: str = parameter("train", "split of WikiText-2 to learn from: train or valid")
    sentences: int = parameter(2000, "sentences of the Penn Treebank sample, the first ones, of 3914")
    components: tuple[int, ...] = parameter((2, 4, 8, 16, 24, 31), "numbers k of leading components; 16 among them")
    steps: int = parameter(300, "steps of Muon")
    batch: int = parameter(21, "rows of text in each step, each of the length of the context")
    rate: float = parameter(2e-3, "learning rate, which falls to 0")
    looks: int = parameter(3, "times that the cross-entropy is looked at during training")

    def __post_init__(self) -> None:
        least = {
            "depth": max(BACK),
            "vocabulary": 100,
            "context": 2,
            "sentences": 20,
            "steps": 1,
            "batch": 1,
            "looks": 1,
        }
        check(self, least=least, positive=("rate",), choices={"text": ("train", "valid")})
        if len(self.widths) < 2 or any(width % HEAD or width < 1 for width in self.widths):
            raise InputError(f"At least 2 widths are needed, all multiples of {HEAD}, not {list(self.widths)}.")
        ks = self.components
        if MODERATE not in ks or list(ks) != sorted(set(ks)) or ks[0] < 1 or ks[-1] > min(self.widths):
            raise InputError(
                f"The components must be different, in order, at most the least width {min(self.widths)}, with "
                f"{MODERATE} among them, not {list(ks)}."
            )


def cell(p: Parameters, seed: int, folder: Path) -> CellData:
    """Models from different starts and batches, all pairs compared layer by layer."""
    from nearid.data.texts import Vocabulary, load_sentences

    held = load_sentences("treebank")
    if p.pretrained:
        return _pretrained(p, held, seed, folder)
    learnt = load_sentences("wikitext2", split=p.text)
    vocabulary = Vocabulary.of(learnt, p.vocabulary)
    stream, unseen = vocabulary.stream(learnt), vocabulary.stream(load_sentences("wikitext2", split="test"))
    models, curves, losses = list[Any](), dict[str, Curve](), list[float]()
    for k, start in enumerate(np.random.SeedSequence(seed).generate_state(len(p.widths))):
        model, found = _model(p, p.widths[k], int(start), stream, unseen, folder / f"model{k}")
        models.append(model)
        curves = curves or found
        losses.append(_loss(model, p, unseen))
    states = [states_of(model, vocabulary, held[: p.sentences]) for model in models]
    by_layer = [mean_agreement(dict(enumerate(layer)), p.components) for layer in zip(*states, strict=True)]
    table = np.asarray(by_layer[::-1]).T
    order = np.random.default_rng(seed).permutation(len(states[0][0]))
    scores = _scores(table, p.components) | {
        "shuffled": agreement(states[0][-1], states[1][-1][order], [MODERATE])[0],
        "loss": float(np.mean(losses)),
        "words": float(len(order)),
        **_maps(models, [s[-1] for s in states], seed),
    }
    return {"scores": scores, "curves": curves, "views": {"components": list(p.components), "layers": _told(table)}}


def _model(
    p: Parameters, width: int, seed: int, stream: np.ndarray, unseen: np.ndarray, folder: Path
) -> tuple[GPT, dict[str, Curve]]:
    from nearid.experiments.training import trained
    from nearid.models.gpt import GPT
    from nearid.models.trainer import seeded

    with seeded(seed):
        model = GPT(p.vocabulary, width, p.depth, width // HEAD, p.context)
    if not p.trained:
        return model.eval(), {}
    places = np.arange(p.context + 1)

    def batches(rng: np.random.Generator) -> tuple[np.ndarray]:
        return (stream[rng.integers(0, len(stream) - p.context, p.batch)[:, None] + places],)

    return model, trained(
        model,
        batches,
        p,
        seed,
        folder,
        looks=p.looks,
        score=lambda _: {"held_out": _loss(model, p, unseen)},
        optimiser="muon",
        schedule="cosine",
        warmup=min(p.steps // 4, 50),
    )


def _loss(model: GPT, p: Parameters, unseen: np.ndarray) -> float:
    """Cross-entropy of held-out words, in nats."""
    import torch

    rows = min(HELD_OUT, len(unseen)) // (p.context + 1)
    ids = torch.as_tensor(unseen[: rows * (p.context + 1)].reshape(rows, -1)).long()
    with torch.no_grad():
        return float(model(ids))


def _scores(table: np.ndarray, ks: Sequence[int]) -> dict[str, float]:
    """Scores from the agreement at each k (rows) and layer, counted back from the last (columns)."""
    scores = {
        f"back{back}": float(table[ks.index(MODERATE), at]) for back, at in zip(BACK, _columns(table), strict=True)
    }
    scores |= {f"most{back}": float(table[-1, at]) for back, at in zip(BACK[:3], _columns(table)[:3], strict=True)}
    leads = [k for k, row in zip(ks, table, strict=True) if all(row[0] > row[at] for at in _columns(table)[1:])]
    return scores | {"leads": float(max(leads, default=0))}


def _columns(table: np.ndarray) -> Sequence[int]:
    """Where the layers of the paper are: in a table of all layers, or of these alone."""
    return BACK if table.shape[1] > len(BACK) else range(len(BACK))


def _maps(models: Sequence[GPT], last: Sequence[np.ndarray], seed: int) -> dict[str, float]:
    """R2 of linear maps between last states, held out: fitted, and built from the heads of models of one width."""
    from nearid.geometry.heads import compare_transforms

    found = [
        compare_transforms(
            tuple(models[k].head.detach().numpy() for k in pair), tuple(last[k] for k in pair), random_state=seed
        )
        for pair in combinations(range(len(models)), 2)
        if models[pair[0]].head.shape == models[pair[1]].head.shape
    ]
    heads = [f.r2_heads for f in found if f.r2_heads is not None]
    scores = {"r2": float(np.mean([f.r2_fitted for f in found]))} if found else {}
    return scores | ({"r2_heads": float(np.mean(heads))} if heads else {})


def _pretrained(p: Parameters, held: Sequence[Sequence[str]], seed: int, folder: Path) -> CellData:
    """The paper's own comparison; its first sentences at seed 0, as many drawn from all at others."""
    if not p.models:
        return {"scores": {}}
    chosen = range(p.sentences) if seed == 0 else np.random.default_rng(seed).permutation(len(held))[: p.sentences]
    names = [name.strip() for name in p.models.split(",")]
    if len(names) < 2:
        raise InputError(f"At least two pretrained models are compared, but models={p.models!r} names one.")
    rows, ks, words = list[list[float]](), list[int](), 0
    for states in pretrained_states(names, [held[k] for k in chosen], BACK, folder):
        words, least = len(next(iter(states.values()))), min(s.shape[1] for s in states.values())
        ks = [k for k in PUBLISHED_KS if k <= least]
        rows.append(mean_agreement(states, ks))
    table = np.asarray(rows).T
    return {"scores": _scores(table, ks) | {"words": float(words)}, "views": {"components": ks, "layers": _told(table)}}


def _told(table: np.ndarray) -> list[list[float]]:
    told: list[list[float]] = table.round(4).tolist()
    return told


def rows(p: Parameters) -> list[Row]:
    """One model of each width, two of the middle one, both without training, and the paper's own."""
    middle = sorted(p.widths)[len(p.widths) // 2]
    across, same = " and ".join(map(str, p.widths)), {"widths": (middle, middle)}
    note = "Read off Fig. 4 at k = 16, which has no table."
    published = {f"back{back}": Published(value, note=note) for back, value in zip(BACK, READ_OFF, strict=True)}
    given = p.models.replace(",", ", ") or f"pretrained GPT-2 (--set models={PRETRAINED})"
    return [
        Row("widths", f"widths {across}, all pairs"),
        Row("same", f"width {middle}, two runs", same),
        Row("widths-untrained", f"widths {across}, untrained", {"trained": False}),
        Row("same-untrained", f"width {middle}, untrained", {"trained": False, **same}),
        Row("pretrained", given, {"pretrained": True}, published),
    ]


def _last_leads(found: Result, row: str) -> Outcome:
    return all_of(*(exceeds(found, (row, "back0"), (row, f"back{back}")) for back in BACK[1:]))


def _training_adds(found: Result) -> Outcome:
    pairs = (("widths", "widths-untrained"), ("same", "same-untrained"))
    return all_of(*(exceeds(found, (a, "back0"), (b, "back0"), by=CLEARLY) for a, b in pairs))


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
    """Agreement over layers, a curve for each k, for every row: the mean over seeds."""
    slots: list[Slot] = []
    for row in found.rows:
        held = [f.data["views"] for f in found.of_row(row.key) if "views" in f.data]
        if not held:
            continue
        table = np.mean([v["layers"] for v in held], axis=0)
        back = [-k for k in (BACK if table.shape[1] == len(BACK) else range(table.shape[1]))]
        slots.append(
            Scatter(
                f"{row.title}: agreement of the layers",
                "Mean canonical correlation of the k leading components, averaged over pairs of models and seeds; 0 is "
                "the last hidden state.",
                "layers before the last",
                "SVCCA",
                {
                    f"k = {k}": (back, values.round(4).tolist())
                    for k, values in zip(held[0]["components"], table, strict=True)
                },
                {},
            )
        )
    return slots


def _datasets(p: Parameters) -> Sequence[str]:
    return ("treebank",) if p.pretrained else ("wikitext2", "treebank")


GPT2_SVCCA = Experiment(
    name="gpt2-svcca",
    paper=ROEDER,
    shows="Fig. 4",
    about="The last hidden states of independently trained language models agree up to a linear map, more than earlier "
    "layers do.",
    defaults=Parameters(),
    presets={
        "smoke": Preset(
            "seconds",
            2,
            {
                "widths": (16, 32),
                "components": (4, 16),
                "vocabulary": 200,
                "context": 12,
                "text": "valid",
                "sentences": 40,
                "steps": 2,
                "batch": 4,
                "looks": 1,
            },
        ),
        "cpu": Preset("about 15 minutes on 2 idle cores (estimated from single models)", 4),
        "paper": Preset(
            "a day on 2 cores (estimated); the paper's own row needs --set models=...",
            4,
            {"widths": (128, 192, 256), "vocabulary": 8000, "context": 64, "steps": 20_000, "batch": 32},
        ),
    },
    columns=(
        *(
            Column(f"back{back}", f"{'last' if back == 0 else f'-{back}'}, k = {MODERATE}", least=0, most=1)
            for back in BACK
        ),
        *(
            Column(f"most{back}", f"{'last' if back == 0 else f'-{back}'}, most k", least=0, most=1)
            for back in BACK[:3]
        ),
        Column("leads", "largest k at which the last leads", 0, least=0),
        Column("shuffled", f"last, k = {MODERATE}, words shuffled", least=0, most=1),
        Column("r2", "R2 of a linear map, last", most=1),
        Column("r2_heads", "R2 of the map from heads", most=1),
        Column("loss", "cross-entropy, held out", least=0),
        Column("words", "tokens compared", 0),
    ),
    rows=rows,
    cell=cell,
    claims=(
        Claim(
            f"Models of several widths: the last hidden state agrees more than those 4, 8 and 12 before (k = {MODERATE}).",
            lambda found: _last_leads(found, "widths"),
        ),
        Claim("So it does for models of one width.", lambda found: _last_leads(found, "same")),
        Claim(
            f"Training makes the last hidden state agree more than it does untrained (by {CLEARLY}).", _training_adds
        ),
        Claim(
            f"A linear map carries the last hidden state of one run to that of another (held out, R2 at least {CARRIED}).",
            _linear,
        ),
        Claim(
            f"The four pretrained GPT-2: the last hidden state agrees more than those 4, 8 and 12 before (k = {MODERATE}).",
            _published_models,
        ),
    ),
    curves=(
        Axes("held_out", "Cross-entropy during training, narrowest model", "steps", "nats for a word, held out"),
        Axes("loss", "Loss during training, narrowest model", "steps", "nats for a word"),
    ),
    figures=figures,
    datasets=_datasets,
)
