import pytest

from deconfound_plans import plan_of
from nearid import InputError
from nearid.questions.deconfound.plan import CLASSIFIERS, named


def test_names_come_in_their_own_order():
    assert named("logistic, boost", "classifier", CLASSIFIERS) == ("boost", "logistic")
    assert named(["ica", "base"], "condition", ("base", "pca", "ica")) == ("base", "ica")
    with pytest.raises(InputError, match="Did you mean pca"):
        named("pac", "condition", ("base", "pca"))
    with pytest.raises(InputError, match="No condition is given"):
        named([], "condition", ("base", "pca"))


@pytest.mark.parametrize(
    ("options", "condition"),
    [
        ({"conditions": ("base", "pca", "ica")}, "base"),
        ({"conditions": ("pca", "ica")}, "ica"),
        ({"conditions": ("pca", "tvn")}, "pca"),
        ({"conditions": ("tvn",)}, None),
        ({"conditions": ("base",), "directions": ("one",)}, None),
    ],
)
def test_the_condition_that_cleaned_rows_are_judged_under(options, condition):
    assert plan_of(drop=0.1, **options).cleaned == condition and plan_of(**options).cleaned is None
