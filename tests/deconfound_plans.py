"""A plan for tests, with the defaults of `deconfound`."""

from nearid.questions.deconfound.plan import Plan

DEFAULTS = {
    "conditions": ("base",),
    "classifiers": ("logistic",),
    "directions": ("most", "one"),
    "folds": 5,
    "perturbations": None,
    "top": (),
    "drop": None,
    "n_components": None,
    "fit_rows": None,
    "min_rows": 10,
    "max_rows": 10_000,
    "boosting": {},
    "nonfinite": "least",
    "random_state": 0,
}


def plan_of(**options):
    return Plan(**{**DEFAULTS, **options})
