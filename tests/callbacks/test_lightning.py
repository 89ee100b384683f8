"""A real Lightning Trainer with the callback: what is logged, and that training is not changed by it.

And the checkpoints that it writes, which are loaded like any other weights.
"""

import argparse

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

pytest.importorskip("lightning", reason="lightning is not installed")

import lightning.pytorch as pl
from lightning.pytorch.loggers import CSVLogger

from nearid import InputError, extract
from nearid.callbacks.lightning import IdentifiabilityCallback
from nearid.callbacks.probe import Probe
from nearid.questions.extract.weights import load_module, load_weights


class Model(pl.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        return torch.nn.functional.cross_entropy(self(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Recorder(CSVLogger):
    def __init__(self, folder):
        super().__init__(folder)
        self.seen = []

    def log_metrics(self, metrics, step=None):
        self.seen.append((step, metrics))


def trained(tmp_path, network, x, callbacks, accumulate=1):
    labels = torch.arange(len(x)) % 3
    loader = DataLoader(TensorDataset(torch.tensor(x), labels), batch_size=20, shuffle=True)
    model, logger = Model(network(0)), Recorder(tmp_path)
    torch.manual_seed(5)
    trainer = pl.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=logger,
        callbacks=callbacks,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        accumulate_grad_batches=accumulate,
    )
    trainer.fit(model, loader)
    return model, logger, trainer


@pytest.mark.filterwarnings("ignore")
def test_the_log_and_the_training(tmp_path, network, probe_inputs):
    reference = extract(network(1), probe_inputs, layers="1")
    probe = Probe(reference, probe_inputs, layer="1", part="net")
    model, logger, trainer = trained(tmp_path, network, probe_inputs, [IdentifiabilityCallback(probe, every=5)])
    looks = [(step, m) for step, m in logger.seen if "nearid/linear_error" in m]
    assert [step for step, _ in looks] == [0, 5, 10, 12]
    assert looks[-1][1]["nearid/rigid_error"] == pytest.approx(probe.measure(model)["rigid_error"])
    assert float(trainer.callback_metrics["nearid/rigid_error"]) == pytest.approx(looks[-1][1]["nearid/rigid_error"])
    alone, _, _ = trained(tmp_path, network, probe_inputs, [])
    for (name, a), b in zip(model.state_dict().items(), alone.state_dict().values(), strict=True):
        assert torch.equal(a, b), name
    # With two batches to a step, each step is looked at once.
    few = IdentifiabilityCallback(probe, every=3)
    _, logger, _ = trained(tmp_path, network, probe_inputs, [few], accumulate=2)
    assert [step for step, m in logger.seen if "nearid/linear_error" in m] == [0, 3, 6]


@pytest.mark.filterwarnings("ignore")
def test_a_wrong_probe_is_an_error_before_training(tmp_path, network, probe_inputs):
    probe = Probe(extract(network(1), probe_inputs, layers="1"), probe_inputs, layer="net.9")
    with pytest.raises(InputError, match=r"nothing named 'net\.9'"):
        trained(tmp_path, network, probe_inputs, [IdentifiabilityCallback(probe)])


class Configured(Model):
    def __init__(self, net, about=None):
        super().__init__(net)
        self.save_hyperparameters("about")
        self.loss = torch.nn.CrossEntropyLoss(weight=torch.ones(3))

    def training_step(self, batch, batch_idx):
        loss = self.loss(self(batch[0]), batch[1])
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


def written(folder, network, x, about):
    """The last checkpoint of a run with Adam and with callbacks that keep figures."""
    keep = pl.callbacks.ModelCheckpoint(folder / "kept", filename="best", monitor="loss", save_top_k=-1, save_last=True)
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = pl.Trainer(max_epochs=2, accelerator="cpu", callbacks=[keep, pl.callbacks.EarlyStopping("loss")], **quiet)
    model = Configured(network(0), about)
    trainer.fit(model, DataLoader(TensorDataset(torch.tensor(x), torch.arange(len(x)) % 3), batch_size=20))
    return model, str(folder / "kept" / "last.ckpt")


@pytest.mark.filterwarnings("ignore")
def test_the_weights_of_a_checkpoint_are_found(tmp_path, network, probe_inputs, monkeypatch):
    model, path = written(tmp_path, network, probe_inputs, {"seed": 0})
    assert load_weights(path).keys() == model.state_dict().keys()
    monkeypatch.setattr("nearid.questions.extract.weights._module", lambda factory: network(3))
    with pytest.raises(InputError, match=r"--prefix net\.\)\.$"):
        load_module(path, factory="a:net")
    loaded = load_module(path, factory="a:net", prefix="net.")
    x = torch.tensor(probe_inputs)
    torch.testing.assert_close(loaded.eval()(x), model.net.eval()(x))


@pytest.mark.filterwarnings("ignore")
def test_a_checkpoint_with_objects_is_refused_by_their_name(tmp_path, network, probe_inputs):
    _, path = written(tmp_path, network, probe_inputs, argparse.Namespace(seed=0))
    with pytest.raises(InputError, match=r"never unpickles\. The first of them is argparse\.Namespace\. Save the"):
        load_weights(path)
