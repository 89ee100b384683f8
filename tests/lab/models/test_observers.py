"""Adapters send numbers on, or say what is missing."""

import sys
import types

import pytest

torch = pytest.importorskip("torch", reason="the extra `train` (torch) is not installed")

from nearid.base.errors import InputError  # noqa: E402
from nearid.lab.models import observers  # noqa: E402

RECORD = {"step": 7, "loss": 0.5, "r2": 0.9, "seconds": 3.0}


def test_weights_and_biases(monkeypatch):
    calls = []
    run = types.SimpleNamespace(log=lambda values, step: calls.append((values, step)))
    monkeypatch.setitem(sys.modules, "wandb", types.SimpleNamespace(init=lambda **o: calls.append(o) or run))
    observers.wandb(project="p")(RECORD)
    assert calls == [{"project": "p"}, ({"loss": 0.5, "r2": 0.9, "seconds": 3.0}, 7)]


def test_tensorboard(monkeypatch, tmp_path):
    calls = []

    class Writer:
        def __init__(self, folder):
            calls.append(folder)

        def add_scalar(self, *given):
            calls.append(given)

        def flush(self):
            calls.append("flush")

    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", types.SimpleNamespace(SummaryWriter=Writer))
    observers.tensorboard(tmp_path)(RECORD)
    assert calls == [str(tmp_path), ("loss", 0.5, 7), ("r2", 0.9, 7), ("seconds", 3.0, 7), "flush"]


@pytest.mark.parametrize(
    ("module", "adapter"), [("wandb", observers.wandb), ("torch.utils.tensorboard", lambda: observers.tensorboard("x"))]
)
def test_what_is_missing_is_told(monkeypatch, module, adapter):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match="is not installed"):
        adapter()
