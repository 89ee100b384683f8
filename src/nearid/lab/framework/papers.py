"""The papers that the experiments come from."""

from __future__ import annotations

from nearid.lab.framework.experiment import Paper

NELSON = Paper(
    "Nelson, Fumero, Karaletsos and Locatello",
    "Statistical and Structural Identifiability in Representation Learning",
    "2026",
    "https://arxiv.org/abs/2603.11970",
)
ROEDER = Paper(
    "Roeder, Metz and Kingma",
    "On Linear Identifiability of Learned Representations",
    "ICML 2021",
    "https://arxiv.org/abs/2007.00810",
)
REIZINGER = Paper(
    "Reizinger, Bizeul, Juhos, Vogt, Balestriero, Brendel and Klindt",
    "Cross-Entropy Is All You Need To Invert the Data Generating Process",
    "ICLR 2025",
    "https://arxiv.org/abs/2410.21869",
)
ZIMMERMANN = Paper(
    "Zimmermann, Sharma, Schneider, Bethge and Brendel",
    "Contrastive Learning Inverts the Data Generating Process",
    "ICML 2021",
    "https://arxiv.org/abs/2102.08850",
)
