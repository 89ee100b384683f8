"""Disentanglement (Nelson et al. 2026, Table 2): a plain autoencoder and ICA beside models made to disentangle.

An autoencoder whose decoder is near an isometry recovers independent factors up to a rotation, and ICA finds that
rotation (Theorem 3). The rows are settings. As in the protocol, each model is judged by its setting and training step
with the best mean InfoM among those that reconstruct well enough, with ICA and without on their own. Unlike in the
protocol, the seeds that select are others than the one that is judged: each seed is judged by what the others select.

Which share of the pixels' variance is enough decides the ranking of models, as those that constrain their latents more
reconstruct less. So the ranking is reported for thresholds from .7 to .95.

The cpu preset differs from the protocol: images of 32 x 32 that are rendered here, light networks, smaller batches, and
thousands of steps instead of 200,000, with a learning rate that falls to 0. Its settings are others than the published
ones, which suit longer training; they were chosen by single runs on seed 0.

The paper argues (4.3) that weight decay bounds the Lipschitz constant of the decoder, and that this is why AE + ICA
disentangles. So a third decay of the autoencoder is trained, which takes no part in the selection, and its decoder's
constant stands beside InfoM. It also reports (A.7.3) that idle latents are obvious from the decoder's Jacobian.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from nearid.base.estimate import Estimate
from nearid.lab.framework.claims import Claim, Outcome, Test, all_of, at_least, decide, exceeds
from nearid.lab.framework.experiment import NELSON, Axes, Column, Experiment, Published, Row, presets
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.papers.common.images import stored_names
from nearid.lab.papers.nelson import sections
from nearid.lab.papers.nelson.autoencoding import Parameters, cell
from nearid.show.figures import Curve, Figure, HeatMap, Lines, Pictures

TITLES = {
    "ae": "AE",
    "beta-vae": "beta-VAE",
    "beta-tcvae": "beta-TCVAE",
    "bioae": "BioAE",
    "vq-vae": "VQ-VAE",
    "qlae": "QLAE",
}
AE_ICA = "AE + ICA"
# Models with continuous latents that were made to disentangle, with which the paper compares.
SPECIALISED = ("beta-vae", "beta-tcvae", "bioae")
# InfoM that ICA must add to be a clear gain.
CLEARLY = 0.05
# Shares of the pixels' variance over which the ranking is reported.
THRESHOLDS = (0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
# Decays of the autoencoder, least first, of which the least is not among the settings to select from.
LEAST, MOST = 0.01, 1.0
# Singular values of idle latents are at least so many times smaller than those of active ones.
OBVIOUS = 5.0


class Setting(NamedTuple):
    """What is tried of a model."""

    model: str
    strength: float = 0.0
    decay: float = 0.0

    @property
    def words(self) -> str:
        told = {"beta-vae": "beta ", "beta-tcvae": "beta ", "bioae": "activity "}.get(self.model)
        return f"decay {self.decay:g}" if told is None else f"{told}{self.strength:g}"


# Each model of continuous latents has a setting that reconstructs and one that constrains more.
TRIED = (
    Setting("ae", decay=LEAST),
    Setting("ae", decay=0.1),
    Setting("ae", decay=MOST),
    Setting("beta-vae", 1.0),
    Setting("beta-vae", 5.0),
    Setting("beta-tcvae", 3.0),
    Setting("beta-tcvae", 10.0),
    Setting("bioae", 0.01, 0.01),
    Setting("bioae", 0.1, 0.01),
    Setting("vq-vae"),
    Setting("qlae", decay=0.1),
)
# Published settings: decay of AE (where none is known, that of the others), betas, activity, decay of QLAE.
PUBLISHED_SETTINGS = {
    "shapes3d": (1e-3, 3.0, 3.0, 0.01, 0.1),
    "mpi3d-complex": (1e-3, 0.1, 0.3, 0.01, 1e-3),
    "falcor3d": (1e-3, 10.0, 3.0, 0.01, 0.1),
    "isaac3d": (1e-3, 0.3, 1.0, 0.1, 0.1),
}
# InfoM, InfoE and InfoC; "" stands for the mean over the four data sets.
VALUES: Mapping[str, Mapping[str, tuple[float, float, float]]] = {
    "ae": {
        "": (0.39, 0.76, 0.25),
        "shapes3d": (0.34, 0.99, 0.16),
        "mpi3d-complex": (0.42, 0.40, 0.31),
        "falcor3d": (0.37, 0.83, 0.20),
        "isaac3d": (0.41, 0.80, 0.34),
    },
    "beta-vae": {
        "": (0.59, 0.81, 0.55),
        "shapes3d": (0.59, 0.99, 0.49),
        "mpi3d-complex": (0.45, 0.71, 0.51),
        "falcor3d": (0.71, 0.73, 0.70),
        "isaac3d": (0.60, 0.80, 0.51),
    },
    "beta-tcvae": {
        "": (0.58, 0.72, 0.59),
        "shapes3d": (0.61, 0.82, 0.62),
        "mpi3d-complex": (0.51, 0.60, 0.57),
        "falcor3d": (0.66, 0.74, 0.71),
        "isaac3d": (0.54, 0.70, 0.46),
    },
    "bioae": {
        "": (0.54, 0.75, 0.36),
        "shapes3d": (0.56, 0.98, 0.44),
        "mpi3d-complex": (0.45, 0.66, 0.36),
        "falcor3d": (0.54, 0.73, 0.31),
        "isaac3d": (0.63, 0.65, 0.33),
    },
}
# The same of AE + ICA.
WITH_ICA = {
    "": (0.65, 0.83, 0.40),
    "shapes3d": (0.79, 0.99, 0.52),
    "mpi3d-complex": (0.44, 0.66, 0.31),
    "falcor3d": (0.71, 0.83, 0.33),
    "isaac3d": (0.64, 0.82, 0.43),
}
NOTE = "Published: Table 2, the selected setting of each model."
ELSEWHERE = (
    "Published values stand beside rendered images for orientation alone: they are means over Shapes3D, MPI3D, "
    "Falcor3D and Isaac3D (Table 2)."
)


def settings(p: Parameters, source: str) -> Sequence[Setting]:
    """What is tried: the published settings in the published protocol, else a few that suit shorter runs."""
    if p.networks != "protocol" or source not in PUBLISHED_SETTINGS:
        return TRIED
    decay, beta, tc, activity, quantised = PUBLISHED_SETTINGS[source]
    return (
        Setting("ae", decay=decay),
        Setting("beta-vae", beta),
        Setting("beta-tcvae", tc),
        Setting("bioae", activity, 1e-4),
        Setting("vq-vae"),
        Setting("vq-vae", decay=0.01),
        Setting("qlae", decay=quantised),
    )


def rows(p: Parameters) -> list[Row]:
    """Every setting of every model, for each source of images."""
    return [
        Row(
            f"{source}-{s.model}-{s.words.replace(' ', '-')}",
            f"{source}: {TITLES[s.model]}, {s.words}",
            {"data": source, **s._asdict()},
            _published(source, s.model),
        )
        for source in p.sources
        for s in settings(p, source)
    ]


def _published(source: str, model: str) -> dict[str, Published]:
    place, note = (source, NOTE) if source in PUBLISHED_SETTINGS else ("", ELSEWHERE)
    published: dict[str, Published] = {}
    for values, suffix in ((VALUES.get(model), ""), (WITH_ICA if model == "ae" else None, "_ica")):
        if values is not None:
            published |= {
                f"{key}{suffix}": Published(value, note=note)
                for key, value in zip(("infom", "infoe", "infoc"), values[place], strict=True)
            }
    return published


class Choice(NamedTuple):
    """A setting and a step of its training, counted among the steps that were looked at."""

    row: Row
    step: int


def candidates(result: ExperimentResult, source: str, model: str, column: str) -> list[Row]:
    """Settings of a model that can be selected, as far as they have the column's curve."""
    return [
        row
        for row in result.rows
        if (row.changes["data"], row.changes["model"]) == (source, model)
        and (model, row.changes["decay"]) != ("ae", LEAST)
        and _curves(result, row, f"look_{column}")
    ]


def _curves(result: ExperimentResult, row: Row, key: str) -> dict[int, list[float]]:
    """A curve of a row by seed."""
    of_seeds = {f.cell.seed: f.data.get("curves", {}).get(key) for f in result.of_row(row.key)}
    return {seed: curve["y"] for seed, curve in of_seeds.items() if curve is not None}


def selected(
    result: ExperimentResult, source: str, model: str, column: str, seeds: Collection[int], threshold: float
) -> Choice | None:
    """The setting and step with the best mean of a column over some seeds among those that reconstruct well enough.

    Where none does, the one that reconstructs best; None where nothing was run.
    """
    # Share that is explained, score, and what they are of.
    scored: list[tuple[float, float, Choice]] = []
    for row in candidates(result, source, model, column):
        scores = [curve for seed, curve in _curves(result, row, f"look_{column}").items() if seed in seeds]
        shares = [curve for seed, curve in _curves(result, row, "explained").items() if seed in seeds]
        # A training that was cut short has fewer steps.
        for step in range(min(map(len, scores), default=0)):
            reached, score = (float(np.mean([curve[step] for curve in curves])) for curves in (shares, scores))
            scored.append((reached, score, Choice(row, step)))
    if not scored:
        return None
    enough = min(threshold, max(reached for reached, _, _ in scored))
    return max((found for found in scored if found[0] >= enough), key=lambda found: found[1])[2]


def by_image(
    result: ExperimentResult, model: str, column: str = "infom", threshold: float | None = None
) -> tuple[dict[tuple[str, int], float], str]:
    """A score by source and seed, each judged by the setting and step that other seeds select; and what these are.

    Without a value wherever a source has none, and where there is no other seed.
    """
    threshold = result.parameters.admitted if threshold is None else threshold
    found: dict[tuple[str, int], float] = {}
    titles: dict[str, None] = {}
    for seed in result.seeds:
        others = [s for s in result.seeds if s != seed]
        for source in result.parameters.sources:
            choice = selected(result, source, model, column, others, threshold) if others else None
            own = {} if choice is None else _curves(result, choice.row, f"look_{column}")
            if choice is not None and len(own.get(seed, ())) > choice.step:
                found[source, seed] = own[seed][choice.step]
                titles[choice.row.title] = None
    return found, "; ".join(titles)


def _over_images(scores: Mapping[tuple[str, int], float], result: ExperimentResult) -> dict[int, float]:
    """Means over the sources, of the seeds that have all of them."""
    sources = result.parameters.sources
    return {
        seed: float(np.mean([scores[source, seed] for source in sources]))
        for seed in result.seeds
        if all((source, seed) in scores for source in sources)
    }


def by_seed(
    result: ExperimentResult, model: str, column: str = "infom", threshold: float | None = None
) -> tuple[dict[int, float], str]:
    """The scores of `by_image` by seed, means over the sources of images."""
    found, titles = by_image(result, model, column, threshold)
    means = _over_images(found, result)
    return means, titles if means else ""


def _gain(result: ExperimentResult) -> Outcome:
    raw, plain = by_seed(result, "ae")
    after, unmixed = by_seed(result, "ae", "infom_ica")
    gain = Estimate.over([after[seed] - raw[seed] for seed in after if seed in raw])
    label = "InfoM of AE + ICA minus that of AE, mean over images"
    return _with_selected(result, ("ae",), gain, CLEARLY, label, [unmixed, plain])


def _beats(model: str) -> Test:
    def test(result: ExperimentResult) -> Outcome:
        after, unmixed = by_seed(result, "ae", "infom_ica")
        theirs, titles = by_seed(result, model)
        margin = Estimate.over([after[seed] - theirs[seed] for seed in after if seed in theirs])
        label = f"InfoM of AE + ICA minus that of {TITLES[model]}, mean over images"
        return _with_selected(result, ("ae", model), margin, 0.0, label, [unmixed, titles])

    return test


def ranking(result: ExperimentResult) -> dict[float, dict[str, float]]:
    """Mean InfoM of each model by threshold of reconstruction, the best first; what has no value is left out."""
    found = {}
    for threshold in THRESHOLDS:
        scores = {AE_ICA: by_seed(result, "ae", "infom_ica", threshold)[0]}
        scores |= {TITLES[model]: by_seed(result, model, threshold=threshold)[0] for model in ("ae", *SPECIALISED)}
        means = {name: float(np.mean(list(each.values()))) for name, each in scores.items() if each}
        found[threshold] = dict(sorted(means.items(), key=lambda item: -item[1]))
    return found


def _best(result: ExperimentResult) -> Outcome:
    decided = all_of(*map(_beats, SPECIALISED))(result)
    ranked = {threshold: list(names) for threshold, names in ranking(result).items() if names}
    if decided.needs or not ranked:
        return decided
    first = [f"{threshold:g}" for threshold, names in ranked.items() if names[0] == AE_ICA]
    told = ", ".join(f"{threshold:g} {names[0]}" for threshold, names in ranked.items())
    said = f"AE + ICA is first at {len(first)} of {len(ranked)} thresholds of reconstruction (the first: {told})."
    # Beside the comparisons, so that no reader of the claim misses it.
    return replace(decided, sentence=f"{decided.sentence} {said}")


def at_the_end(result: ExperimentResult, model: str, column: str, by: str) -> dict[tuple[str, int], float]:
    """A score at the end of training by source and seed, of the setting that the other seeds select by a column.

    Only InfoM was stored during training, so other scores are those of its end.
    """
    found = {}
    for source in result.parameters.sources:
        for seed in result.seeds:
            others = [s for s in result.seeds if s != seed]
            choice = selected(result, source, model, by, others, result.parameters.admitted) if others else None
            value = None if choice is None else result.scores(choice.row.key, column).get(seed)
            if value is not None:
                found[source, seed] = value
    return found


def _above(score: str, higher: tuple[str, bool], lower: tuple[str, bool]) -> Test:
    """Whether a model has more of a score than another, mean over images; each is a model, and whether ICA follows."""

    def test(result: ExperimentResult) -> Outcome:
        means, names = [], []
        for model, unmixed in (higher, lower):
            after = "_ica" if unmixed else ""
            means.append(_over_images(at_the_end(result, model, f"{score.lower()}{after}", f"infom{after}"), result))
            names.append(f"{TITLES[model]}{' + ICA' if unmixed else ''}")
        margin = Estimate.over([means[0][seed] - means[1][seed] for seed in means[0] if seed in means[1]])
        rows_ = [row.key for row in result.every_row if row.changes["model"] in (higher[0], lower[0])]
        label = f"{score} of {names[0]} minus that of {names[1]}, mean over images"
        return decide(result, rows_, margin, 0.0, label, above=True, strict=True)

    return test


def _mostly(result: ExperimentResult) -> Outcome:
    """Whether AE + ICA has more InfoM in more than half of the comparisons with a specialised model on one source."""
    ours, _ = by_image(result, "ae", "infom_ica")
    theirs = [by_image(result, model)[0] for model in SPECIALISED]
    shares = []
    for seed in result.seeds:
        pairs = [(ours.get((s, seed)), each.get((s, seed))) for s in result.parameters.sources for each in theirs]
        known = [a > b for a, b in pairs if a is not None and b is not None]
        if len(known) == len(pairs):
            shares.append(float(np.mean(known)))
    rows_ = [row.key for row in result.every_row if row.changes["model"] in ("ae", *SPECIALISED)]
    label = "The share of comparisons in which AE + ICA has more InfoM"
    column = Column("share", label, least=0, most=1)
    return decide(result, rows_, Estimate.over(shares), 0.5, label, above=True, column=column, strict=True)


def _with_selected(
    result: ExperimentResult,
    models: Sequence[str],
    estimate: Estimate,
    threshold: float,
    label: str,
    chosen: Sequence[str],
) -> Outcome:
    # A setting of which a cell failed might have been the selected one.
    rows = [row.key for row in result.every_row if row.changes["model"] in models]
    decided = decide(result, rows, estimate, threshold, label, above=True, strict=threshold == 0)
    if decided.needs or not estimate.n:
        return decided
    return replace(decided, sentence=f"{decided.sentence} Selected: {'; '.join(chosen)}.")


def _along_decay(column: str, *, rising: bool) -> Test:
    """Whether the least decay of the autoencoder has less (or more) of a score than the most, for each source."""

    def test(result: ExperimentResult) -> Outcome:
        ends = [[f"{source}-ae-decay-{decay:g}" for decay in (MOST, LEAST)] for source in result.parameters.sources]
        pairs = [(most, least) if rising else (least, most) for most, least in ends]
        return all_of(*(exceeds((higher, column), (lower, column)) for higher, lower in pairs))(result)

    return test


def _obvious(result: ExperimentResult) -> Outcome:
    rows = [f"{source}-ae-decay-{MOST:g}" for source in result.parameters.sources]
    tests = [at_least(row, "gap", OBVIOUS) for row in rows] + [
        exceeds((row, "gap"), (row, "condition")) for row in rows
    ]
    return all_of(*tests)(result)


def ranking_figure(result: ExperimentResult) -> Figure | None:
    """InfoM of each model by the share of the pixels' variance that its setting must explain."""
    ranked = ranking(result)
    names = list(dict.fromkeys(name for means in ranked.values() for name in means))
    curves = {
        name: Curve(
            [t for t in ranked if name in ranked[t]], [m[name] for m in ranked.values() if name in m], markers=True
        )
        for name in names
    }
    if not curves:
        return None
    return Lines(
        "disentanglement: ranking by threshold of reconstruction",
        "Mean InfoM over images and seeds. Each seed is judged by the setting and step that the others select.",
        "share of the pixels' variance that a setting must explain",
        "InfoM",
        curves,
        wide=True,
    )


def figures(result: ExperimentResult) -> list[Figure]:
    """The ranking by threshold, and of the selected setting of each model at its first seed: information, images."""
    slots: list[Figure] = [drawn for drawn in (ranking_figure(result),) if drawn is not None]
    for source in result.parameters.sources:
        for model in TITLES:
            column = "infom_ica" if model == "ae" else "infom"
            choice = selected(result, source, model, column, result.seeds, result.parameters.admitted)
            if choice is not None:
                slots += drawn_views(choice.row.title, result.of_row(choice.row.key)[0].data["views"])
    return slots


def drawn_views(title: str, v: Mapping[str, Any]) -> list[Figure]:
    """Figures of one trained model."""
    panels = {"latents as they are": v["raw"]} | ({"after ICA": v["ica"]} if "ica" in v else {})
    slots: list[Figure] = [
        HeatMap(
            f"{title}: what latents tell of factors",
            "Normalised mutual information of latents (rows) with factors (columns). One bright field in each row is "
            "modularity.",
            panels,
            [f"latent {k + 1}" for k in range(len(v["raw"]))],
            v["factors"],
        ),
        Pictures(
            f"{title}: reconstructions",
            "Images that training may not have seen, and what the model makes of them.",
            v["reconstructions"],
            ["image", "found"],
            [""] * v["shown"],
        ),
    ]
    if "traversals" in v:
        slots.append(
            Pictures(
                f"{title}: along components",
                "Each row follows one component after ICA, those that vary most first; all others stay as they are in "
                "the first image above. A disentangled component changes one thing.",
                v["traversals"],
                [f"component {k + 1}" for k in v["traversed"]],
                [f"{x:+.1f} sd" for x in v["reach"]],
            )
        )
    return slots


DISENTANGLEMENT = Experiment(
    name="disentanglement",
    paper=NELSON,
    shows="Table 2",
    section=replace(sections.DISENTANGLEMENT, figure=ranking_figure),
    about="ICA turns the latents of a plain autoencoder so that each informs of one factor, better than models that "
    "were made to disentangle.",
    defaults=Parameters(),
    presets=presets(cpu=("about an hour of one core", 3), paper=("weeks on a GPU (estimated)", 3)),
    columns=(
        Column("infom", "InfoM", 2, least=0, most=1),
        Column("infom_ica", "InfoM + ICA", 2, least=0, most=1),
        Column("infoe", "InfoE", 2, most=1),
        Column("infoe_ica", "InfoE + ICA", 2, most=1),
        Column("infoc", "InfoC", 2, least=0, most=1),
        Column("infoc_ica", "InfoC + ICA", 2, least=0, most=1),
        Column("mcc", "MCC", 2, least=-1, most=1),
        Column("mcc_ica", "MCC + ICA", 2, least=-1, most=1),
        Column("dci_d", "DCI D", 2, least=0, most=1),
        Column("dci_d_ica", "DCI D + ICA", 2, least=0, most=1),
        Column("explained", "pixels explained", 3, most=1),
        Column("directions", "active directions of the decoder", 1),
        Column("gap", "gap below them", 1, least=1),
        Column("condition", "largest over smallest of them", 1, least=1),
        Column("lipschitz", "bi-Lipschitz constant within them", 2, least=1),
    ),
    rows=rows,
    cell=cell,
    claims=(
        Claim(f"ICA raises the InfoM of the autoencoder clearly (by at least {CLEARLY:g}, mean over images).", _gain),
        Claim(
            "AE + ICA is better than every specialised model (beta-VAE, beta-TCVAE, BioAE) in InfoM, mean over images.",
            _best,
        ),
        Claim(
            f"Weight decay of {MOST:g} brings the decoder nearer to an isometry than {LEAST:g} (a lower bi-Lipschitz "
            "constant within the active directions), on all images (4.3).",
            _along_decay("lipschitz", rising=False),
        ),
        Claim(
            f"And it raises the InfoM of AE + ICA, on all images ({MOST:g} against {LEAST:g}).",
            _along_decay("infom_ica", rising=True),
        ),
        Claim(
            "Idle latents are obvious from the decoder's Jacobian: its singular values fall by a factor of at least "
            f"{OBVIOUS:g} between active and idle directions, more than within the active ones (A.7.3).",
            _obvious,
        ),
        Claim(
            "AE + ICA is better in InfoM most of the time: in more than half of the comparisons with a specialised "
            "model on one kind of images.",
            _mostly,
            late=True,
        ),
        Claim(
            "AE + ICA is better than every specialised model in InfoE, too (Table 2; mean over images, at the end of "
            "training).",
            all_of(*(_above("InfoE", ("ae", True), (model, False)) for model in SPECIALISED)),
            late=True,
        ),
        Claim(
            "ICA raises the InfoC of the autoencoder (Table 2; mean over images, at the end of training).",
            _above("InfoC", ("ae", True), ("ae", False)),
            late=True,
        ),
        Claim(
            "In InfoC, AE + ICA is above BioAE and below beta-VAE and beta-TCVAE (Table 2; mean over images, at the "
            "end of training).",
            all_of(
                _above("InfoC", ("ae", True), ("bioae", False)),
                *(_above("InfoC", (model, False), ("ae", True)) for model in ("beta-vae", "beta-tcvae")),
            ),
            late=True,
        ),
        Claim(
            "ICA raises the InfoE of the autoencoder (Table 2; mean over images, at the end of training).",
            _above("InfoE", ("ae", True), ("ae", False)),
            late=True,
        ),
    ),
    curves=(
        Axes("explained", "Reconstruction during training", "steps", "share of the pixels' variance explained"),
        Axes("look_infom", "InfoM during training", "steps", "InfoM"),
        Axes("look_infom_ica", "InfoM with ICA during training", "steps", "InfoM + ICA"),
        Axes("loss", "Loss during training", "steps", "loss of the objective"),
    ),
    # 2: gradients are cut; InfoM during training; the decoder's Jacobian.
    version=2,
    figures=figures,
    datasets=lambda p: stored_names(p.sources),
)
