"""Training: records, resuming to the bit, early ends, and several models in one run."""

import json

import numpy as np
import pytest
import torch

from nearid.base.errors import InputError, NearidError
from nearid.lab.models.encoders import mlp
from nearid.lab.models.objectives import (
    Contrastive,
    Regression,
)
from nearid.lab.models.trainer import (
    Together,
    Training,
    seeded,
    train,
)

MIXING = np.random.default_rng(5).normal(size=(3, 2))


def pairs(rng):
    z = rng.normal(size=(32, 3))
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    near = z + 0.2 * rng.normal(size=z.shape)
    return z @ MIXING, near @ MIXING


def regression(rng):
    z = rng.normal(size=(64, 2))
    return np.tanh(z), z


class Dropping(Contrastive):
    """A model that uses torch's own random numbers."""

    def forward(self, x, positive):
        return super().forward(torch.nn.functional.dropout(x, 0.1), positive)


def model(kind=Dropping):
    with seeded(3):
        return kind(mlp(2, 3, [8, 8], batch_norm=True), 3)


def without_time(records):
    return [{name: value for name, value in record.items() if name != "seconds"} for record in records]


def state(m):
    return {name: value.clone() for name, value in m.state_dict().items()}


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


OPTIONS = {"learning_rate": 1e-2, "log_every": 5, "score_every": 10, "schedule": "cosine", "warmup": 3, "seed": 4}


def score(m):
    return {"norm": sum(p.square().sum().item() for p in m.parameters())}


@pytest.mark.parametrize("optimiser", ["adam", "adamw", "sgd"])
def test_killed_and_resumed_equals_undisturbed(tmp_path, optimiser):
    options = Training(steps=40, optimiser=optimiser, checkpoint_seconds=0, **OPTIONS)
    whole = model()
    expected = train(whole, pairs, options, score=score)

    class Killed(Exception):
        pass

    calls = 0

    def dying(rng):
        nonlocal calls
        calls += 1
        if calls in (13, 20, 42):
            raise Killed
        return pairs(rng)

    for _ in range(3):
        with pytest.raises(Killed):
            train(model(), dying, options, folder=tmp_path / "run", score=score)
        torch.rand(3)
    resumed = model()
    found = train(resumed, dying, options, folder=tmp_path / "run", score=score)
    assert calls < 80
    assert same(state(whole), state(resumed))
    assert without_time(found.records) == without_time(expected.records)
    lines = (tmp_path / "run" / "log.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == found.records
    # A finished run is not run again.
    again = model()
    assert train(again, dying, options, folder=tmp_path / "run").records == found.records
    assert same(state(whole), state(again))


def test_the_seed_decides_and_the_caller_keeps_its_own():
    found = []
    for seed in (0, 0, 1):
        torch.manual_seed(9)
        trained = model()
        train(trained, pairs, Training(steps=10, **OPTIONS | {"seed": seed}))
        found.append((state(trained), torch.rand(1)))
    assert same(found[0][0], found[1][0]) and not same(found[0][0], found[2][0])
    assert found[0][1] == found[2][1]


def test_records_and_what_sees_them(tmp_path):
    notes = []

    def progress(stage, steps):
        notes.append((stage, steps))
        return notes.append

    trained = model(Contrastive)
    found = train(trained, pairs, Training(steps=23, **OPTIONS), score=score, progress=progress)
    assert [r["step"] for r in found.records] == [5, 10, 15, 20, 23]
    assert [r["step"] for r in found.records if "norm" in r] == [10, 20, 23]
    assert found.steps == 23 and found.stopped == "steps"
    assert notes[0] == ("training", 5) and notes[1].startswith("loss ") and "norm" in notes[3]
    assert not trained.training


def test_the_loss_falls_and_regression_learns():
    with seeded(0):
        learner = Regression(mlp(2, 2, [32]), 2)
    found = train(learner, regression, Training(steps=600, learning_rate=1e-2, log_every=20, score_every=20))
    assert found.records[-1]["loss"] < 0.1 * found.records[0]["loss"]


def test_stops_on_a_plateau():
    class Flat(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.at = torch.nn.Parameter(torch.tensor(3.0))

        def forward(self, x):
            return torch.relu(self.at - 1) + 0 * x.sum()

    options = Training(steps=10_000, learning_rate=0.1, log_every=5, score_every=5, patience=4, least_gain=1e-3)
    found = train(Flat(), lambda rng: (rng.normal(size=(2, 1)),), options)
    assert found.stopped == "plateau"
    # About 20 steps of 0.1 lead to the flat part, and four records without gain end it.
    assert 40 <= found.steps <= 60


def test_stops_when_time_is_up_and_goes_on_with_more(tmp_path):
    undisturbed = model()
    train(undisturbed, pairs, Training(steps=20, **OPTIONS))
    stopped = train(model(), pairs, Training(steps=20, seconds=0.0, **OPTIONS), folder=tmp_path)
    assert stopped.stopped == "seconds" and stopped.steps == 5
    resumed = model()
    found = train(resumed, pairs, Training(steps=20, seconds=1e6, **OPTIONS), folder=tmp_path)
    assert found.stopped == "steps" and found.steps == 20 and found.seconds > stopped.seconds
    assert same(state(undisturbed), state(resumed))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"steps": 0}, "steps is 0"),
        ({"learning_rate": -1}, "learning_rate is -1"),
        ({"optimiser": "lion"}, "no optimiser 'lion'"),
        ({"schedule": "square"}, "no schedule 'square'"),
        ({"weight_decay": 0.1}, "adam has no weight_decay"),
        ({"log_every": 7}, "multiple of log_every"),
        ({"patience": 0}, "patience is 0"),
    ],
)
def test_options_that_cannot_be(options, told):
    with pytest.raises(InputError, match=told):
        Training(**{"steps": 10} | options)


def test_a_device_that_is_not_here():
    with pytest.raises(InputError, match="'nowhere' is not available"):
        train(model(), pairs, Training(steps=1, device="nowhere"))


def test_a_rate_that_rises_and_falls():
    options = Training(steps=100, learning_rate=2.0, warmup=10, schedule="cosine")
    assert options.rate(0) == pytest.approx(0.2, rel=1e-3)
    assert options.rate(50) == pytest.approx(1.0)
    assert options.rate(99) < 1e-3
    assert Training(steps=100, learning_rate=2.0).rate(99) == 2.0


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    train(model(), pairs, Training(steps=5, **OPTIONS), folder=tmp_path)
    with pytest.raises(InputError, match="another run: seed, steps differ"):
        train(model(), pairs, Training(steps=6, **OPTIONS | {"seed": 5}), folder=tmp_path)
    (tmp_path / "checkpoint.pt").write_bytes(b"junk")
    with pytest.raises(InputError, match="is damaged"):
        train(model(), pairs, Training(steps=5, **OPTIONS), folder=tmp_path)


def test_a_loss_that_is_no_number_is_told():
    with pytest.raises(NearidError, match="training has diverged"):
        train(model(), lambda rng: (np.full((4, 2), np.nan),) * 2, Training(steps=5, **OPTIONS))


def test_a_last_step_that_diverges_is_told_before_the_scores():
    # The losses are those before the steps, and both are finite.
    def score(trained):
        raise AssertionError("weights that are not finite were scored")

    class Leaping(torch.nn.Linear):
        def forward(self, x):
            return (super().forward(x) * 1e30).sum() * 1e8

    with pytest.raises(NearidError, match=r"Weights are not finite by step 1: training has diverged\. Lower the learn"):
        options = Training(1, 1e3, optimiser="sgd", log_every=1, score_every=1)
        train(Leaping(1, 1), lambda rng: (np.ones((1, 1)),), options, score=score)


@pytest.mark.parametrize("batch", [np.zeros((4, 2)), (np.zeros((4, 2)), np.zeros((3, 2)))])
def test_a_batch_that_cannot_be(batch):
    with pytest.raises(InputError, match="A batch must be a tuple of arrays"):
        train(model(), lambda rng: batch, Training(steps=5, **OPTIONS))


def test_a_folder_that_cannot_be(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is a file"):
        train(model(), pairs, Training(steps=5, **OPTIONS), folder=tmp_path / "file")


def test_another_loss_on_the_same_parameters_is_another_run(tmp_path):
    from nearid.lab.models.objectives import Contrastive

    def batches(rng):
        x = rng.normal(size=(8, 2)).astype("float32")
        return x, x

    def run(**how):
        model = Contrastive(mlp(2, 2, [4]), 2, **how)
        return train(model, batches, Training(2, log_every=2, score_every=2), folder=tmp_path)

    run(space="unbounded", p=1)
    with pytest.raises(InputError, match="another run: model differ"):
        run(space="unbounded", p=2)


def learner(seed):
    with seeded(seed):
        return Regression(mlp(2, 2, [8]), 2)


def batches(rng):
    found = []
    for scale in (1.0, 3.0):
        z = rng.normal(size=(16, 2))
        found += [np.tanh(scale * z), z]
    return tuple(found)


@pytest.mark.parametrize("optimiser", ["adam", "adamw", "sgd"])
def test_each_learns_what_it_learns_alone(optimiser):
    options = Training(30, 1e-2, optimiser=optimiser, log_every=10, score_every=10)
    pair = [learner(0), learner(1)]
    losses = np.array([r["loss"] for r in train(Together(*pair), batches, options).records])
    for k, together in enumerate(pair):
        alone = learner(k)
        run = train(alone, lambda rng, k=k: batches(rng)[2 * k : 2 * k + 2], options)
        for a, b in zip(together.parameters(), alone.parameters(), strict=True):
            assert torch.equal(a, b)
        losses -= [r["loss"] for r in run.records]
    np.testing.assert_allclose(losses, 0, atol=1e-6)


@pytest.mark.parametrize("arrays", [0, 3])
def test_a_batch_that_cannot_be_shared_out(arrays):
    with pytest.raises(InputError, match=f"{arrays} arrays cannot be divided evenly among 2 models"):
        Together(learner(0), learner(1))(*[torch.zeros(4, 2)] * arrays)
