"""Training in a cell: looks at even steps, and curves from the records that have them."""

from dataclasses import dataclass

import numpy as np
import pytest

from nearid.lab.framework.training import curves, trained


@dataclass(frozen=True)
class Parameters:
    steps: int = 25
    rate: float = 0.05
    schedule: str = "constant"


def test_curves_are_made_of_records_that_have_all_scores():
    records = [
        {"step": 5, "loss": 3.0, "seconds": 1.0},
        {"step": 10, "loss": 2, "seconds": 2.0, "mcc": 0.5},
        {"step": 15, "loss": 1.0, "seconds": 3.0},
        {"step": 17, "loss": 0.5, "seconds": 4.0, "mcc": 0.75},
    ]
    steps = [10.0, 17.0]
    assert curves(records) == {"loss": {"x": steps, "y": [2.0, 0.5]}, "mcc": {"x": steps, "y": [0.5, 0.75]}}
    assert curves(records[:1]) == {"loss": {"x": [5.0], "y": [3.0]}}


def test_a_model_is_trained_in_place_with_looks_at_even_steps(tmp_path):
    torch = pytest.importorskip("torch", reason="the extra `lab` is not installed")

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(()))

        def forward(self, x):
            return (self.weight * x - 2 * x).square().mean()

    def run(name, **options):
        model = Model()
        # Of one size, so that the loss is that of the weight, whatever the draw.
        signs = lambda rng: (rng.choice([-1.0, 1.0], size=8),)  # noqa: E731
        found = trained(model, signs, Parameters(), 3, tmp_path / name, **options)
        return model.weight.item(), found

    weight, found = run("a", looks=5, score=lambda m: {"weight": m.weight.item()})
    assert found["loss"]["x"] == found["weight"]["x"] == [5.0, 10.0, 15.0, 20.0, 25.0]
    assert found["weight"]["y"][-1] == weight and np.all(np.diff(found["loss"]["y"]) < 0)
    assert run("b", looks=5)[0] == weight
    # More looks than steps: one at each.
    assert len(run("c", looks=99)[1]["loss"]["x"]) == 25
    assert run("d", looks=5, optimiser="sgd")[0] != weight
    # Without a schedule of the parameters the rate falls to 0.
    assert run("e", looks=5, schedule="cosine")[0] < weight
