"""Batches and precisions that are measured: what is chosen, that rows are those of the choice, and what is told."""

import numpy as np
import pytest
import torch
from torch import nn

from nearid.base.errors import InputError
from nearid.questions.extract import tuning
from nearid.questions.extract.batches import open_source
from nearid.questions.extract.run import extract
from nearid.questions.extract.store import partial_folder


@pytest.fixture
def model():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(6, 40), nn.Tanh(), nn.Linear(40, 5))


@pytest.fixture
def inputs():
    return np.random.default_rng(0).normal(size=(300, 6)).astype(np.float32)


class Passes:
    """A forward pass whose time for a batch is known."""

    device = torch.device("cpu")

    def with_layout(self, batch):
        return self, {}


def timed(monkeypatch, seconds):
    tried = []

    def told(forward, batches):
        tried.extend(batch.n for batch in batches)
        return seconds(tried[-1]), {}

    monkeypatch.setattr(tuning, "_seconds", told)
    return tried


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (lambda n: 1.0, 512),  # a pass takes as long whatever goes through it
        (lambda n: n / 1000, 8),  # nothing is gained
        (lambda n: max(n, 64) / 1000, 64),
        (lambda n: 1.0 if n < 100 else 6.0, 64),  # no longer faster
        (lambda n: 6.0, 8),  # slow enough to try no more
    ],
)
def test_a_batch_grows_while_it_is_faster(monkeypatch, seconds, expected):
    timed(monkeypatch, seconds)
    assert tuning.fitting_batch(Passes(), open_source(np.zeros((5000, 2), np.float32))) == expected


def test_a_batch_that_does_not_fit_is_not_taken(monkeypatch):
    def seconds(n):
        if n > 32:
            raise InputError("does not fit")
        return 1.0

    timed(monkeypatch, seconds)
    assert tuning.fitting_batch(Passes(), open_source(np.zeros((5000, 2), np.float32))) == 32


def test_no_batch_is_tried_beyond_the_inputs_or_the_memory(monkeypatch):
    tried = timed(monkeypatch, lambda n: 1.0)
    assert tuning.fitting_batch(Passes(), open_source(np.zeros((200, 2), np.float32))) == 16
    assert tried == [8, 16]
    peaks = iter(range(0, 10**12, 10**11))
    monkeypatch.setattr(tuning, "_peak", lambda: next(peaks))
    monkeypatch.setattr(tuning, "available_memory", lambda: 10**11)
    assert tuning.fitting_batch(Passes(), open_source(np.zeros((5000, 2), np.float32))) == 8


def test_rows_are_those_of_the_batch_that_was_chosen(model, inputs, monkeypatch, contents, tmp_path):
    monkeypatch.setattr(tuning, "fitting_batch", lambda forward, source: 48)
    extract(model, inputs, batch_size="auto", out=tmp_path / "auto")
    extract(model, inputs, batch_size=48, out=tmp_path / "same")
    assert contents(tmp_path / "auto") == contents(tmp_path / "same")


def test_a_real_choice_is_one_of_the_sizes(model, inputs):
    chosen = extract(model, inputs, batch_size="auto")
    assert chosen.provenance["options"]["batch_size"] in tuning.SIZES
    np.testing.assert_allclose(chosen["2"].read(0, 300), extract(model, inputs)["2"].read(0, 300), atol=1e-6)
    with pytest.raises(InputError, match="batch_size is 'many', but"):
        extract(model, inputs, batch_size="many")


def test_batches_that_come_as_they_are_stay_so(model, inputs):
    found = extract(model, (part for part in np.split(inputs, 3)), batch_size="auto", mixed="auto")
    assert found.provenance["rows"] == 300


def test_an_interrupted_run_goes_on_with_its_batch_and_precision(model, inputs, monkeypatch, contents, tmp_path):
    from nearid.questions.extract import passes

    real, faster = passes.Run._write, {torch.bfloat16: 0.1, None: 1.0}
    monkeypatch.setattr(tuning, "_seconds", lambda f, batches: (faster[f.mixed], f(batches[0])[0]))

    def interrupted(self, store, batch, *rows):
        if batch.start >= 150:
            raise KeyboardInterrupt
        real(self, store, batch, *rows)

    options = {"batch_size": "auto", "mixed": "auto"}
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(tuning, "fitting_batch", lambda forward, source: 50)
        patch.setattr(passes.Run, "_write", interrupted)
        extract(model, inputs, **options, out=tmp_path / "run")
    # By now everything else would be chosen.
    faster[torch.bfloat16] = 10.0
    monkeypatch.setattr(tuning, "fitting_batch", lambda forward, source: 8)
    assert partial_folder(tmp_path / "run").exists()
    found = extract(model, inputs, **options, out=tmp_path / "run")
    assert found.provenance["options"]["batch_size"] == 50 and found.provenance["options"]["precision"] == "bfloat16"
    extract(model, inputs, batch_size=50, mixed="bfloat16", out=tmp_path / "whole")
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")
    # Begun anew, it chooses anew.
    again = extract(model, inputs, **options, out=tmp_path / "run", overwrite=True)
    assert again.provenance["options"]["batch_size"] == 8 and again.provenance["options"]["precision"] == "float32"


def test_bfloat16_on_the_processor_tells_how_far_rows_differ(model, inputs):
    found = extract(model, inputs, mixed="bfloat16", batch_size=300)
    (alert,) = [a for a in found.alerts if a.code == "mixed_precision"]
    x = torch.from_numpy(inputs)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        half = model(x)
    np.testing.assert_array_equal(found["2"].read(0, 300), half.float().numpy())
    off = 0.0
    for depth in (1, 2, 3):
        with torch.no_grad():
            full = model[:depth](x[: tuning.COMPARED])
            with torch.autocast("cpu", torch.bfloat16):
                rounded = model[:depth](x[: tuning.COMPARED]).float()
        off = max(off, float((rounded - full).norm() / (full - full.mean(0)).norm()))
    told = float(alert.message.partition("up to ")[2].partition("%")[0])
    assert 0 < off < 0.05 and told == pytest.approx(100 * off, abs=0.006)


@pytest.mark.parametrize(("speed", "precision"), [(2.0, "bfloat16"), (1.05, "float32"), (0.5, "float32")])
def test_auto_takes_bfloat16_where_it_is_faster(model, inputs, monkeypatch, speed, precision):
    monkeypatch.setattr(
        tuning, "_seconds", lambda f, batches: (1.0 if f.mixed is None else 1 / speed, f(batches[0])[0])
    )
    found = extract(model, inputs, mixed="auto")
    assert found.provenance["options"]["precision"] == precision
    code = "mixed_precision" if precision == "bfloat16" else "full_precision"
    (alert,) = [a for a in found.alerts if a.code == code]
    assert f"{speed:.2g} times as fast" in alert.message
    if precision == "float32":
        np.testing.assert_array_equal(found["2"].read(0, 300), extract(model, inputs)["2"].read(0, 300))


def test_a_model_that_does_not_run_in_bfloat16_runs_in_full_precision(inputs):
    class Stubborn(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(6, 4)

        def forward(self, x):
            y = self.inner(x)
            if y.dtype != torch.float32:
                raise RuntimeError("only float32")
            return y

    found = extract(Stubborn(), inputs, mixed="bfloat16")
    assert found.provenance["options"]["precision"] == "float32"
    assert "does not run in bfloat16 here" in str(found.alerts) and "only float32" in str(found.alerts)


def test_progress_tells_inputs_in_a_second(model, inputs):
    notes = []

    def progress(stage, steps):
        return lambda note="": notes.append(note)

    extract(model, inputs, batch_size=100, progress=progress)
    assert len(notes) == 3 and all(note.endswith(" inputs/s") for note in notes)
