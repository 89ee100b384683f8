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
    ("options", "message"),
    [
        ({"drop": 0.1}, "Add the condition 'ica'"),
        ({"drop": 0.1, "conditions": ("ica",), "directions": ("one",)}, "Add the direction 'most'"),
    ],
)
def test_what_cannot_be_dropped(options, message):
    with pytest.raises(InputError, match=message):
        plan_of(**options)
