"""A real transformers Trainer with the callback: what is logged, and that training is not changed by it."""

from typing import ClassVar

import numpy as np
import pytest
import torch

transformers = pytest.importorskip("transformers", reason="the extra `hf` is not installed")

from nearid import InputError, extract  # noqa: E402
from nearid.callbacks.hf import IdentifiabilityCallback  # noqa: E402
from nearid.callbacks.probe import Probe  # noqa: E402

LAYER = "hidden_states.2"


def gpt2(seed):
    torch.manual_seed(seed)
    config = transformers.GPT2Config(
        n_layer=2, n_head=2, n_embd=8, vocab_size=11, n_positions=8, bos_token_id=0, eos_token_id=0
    )
    return transformers.GPT2LMHeadModel(config)


def trained(tmp_path, tokens, probe=None, **options):
    pytest.importorskip("accelerate", reason="the Trainer of transformers needs accelerate")
    model = gpt2(0)
    told = {"max_steps": 6, "logging_steps": 2, "per_device_train_batch_size": 4, "use_cpu": True, **options}
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path), save_strategy="no", report_to=[], disable_tqdm=True, seed=3, **told
    )
    rows = [{"input_ids": t, "labels": t} for t in torch.tensor(tokens)]
    trainer = transformers.Trainer(model=model, args=arguments, train_dataset=rows)
    if probe is not None:
        trainer.add_callback(IdentifiabilityCallback(trainer, probe, every=4))
    trainer.train()
    return model, trainer.state.log_history


@pytest.fixture
def tokens(rng):
    return rng.integers(0, 11, (60, 8))


def test_the_log_and_the_training(tmp_path, tokens):
    other = extract(gpt2(1), tokens, layers=LAYER, pool="last")
    probe = Probe(other, tokens, layer=LAYER, pool="last")
    model, log = trained(tmp_path, tokens, probe)
    looks = [entry for entry in log if "nearid/linear_error" in entry]
    assert [entry["step"] for entry in looks] == [0, 4, 6]
    assert all(0 < entry[f"nearid/{g}_error"] < 1 for entry in looks for g in ("permutation", "rigid", "linear"))
    assert looks[-1]["nearid/rigid_error"] == pytest.approx(probe.measure(model)["rigid_error"])
    alone, plain = trained(tmp_path, tokens)
    for (name, a), b in zip(model.state_dict().items(), alone.state_dict().values(), strict=True):
        assert torch.equal(a, b), name
    # The loss is logged in the same steps, also in those that were looked at.
    losses = [[(e["step"], e["loss"]) for e in entries if "loss" in e] for entries in (log, plain)]
    assert losses[0] == losses[1] and [step for step, _ in losses[0]] == [2, 4, 6]


def test_the_hooks_one_by_one(tokens):
    """With the state and control of transformers, for where its Trainer cannot run."""

    class Logged:
        model = gpt2(0)
        entries: ClassVar = []

        def log(self, entry):
            self.entries.append(entry)
            control.should_log = False  # as the Trainer does

    probe = Probe(extract(gpt2(1), tokens, layers=LAYER), tokens, layer=LAYER)
    state, control = transformers.TrainerState(), transformers.TrainerControl(should_log=True)
    callback = IdentifiabilityCallback(Logged(), probe, every=2, prefix="near")
    callback.on_train_begin(None, state, control)
    for state.global_step in (1, 2, 3):
        callback.on_step_end(None, state, control)
    assert len(Logged.entries) == 2 and control.should_log
    callback.on_train_end(None, state, control)
    assert len(Logged.entries) == 3 and "near/rigid_r2" in Logged.entries[0]
    state.is_world_process_zero = False
    callback.on_train_begin(None, state, control)
    state.is_world_process_zero = True
    Logged.model.transformer.wte.weight.data.fill_(float("inf"))
    with pytest.warns(UserWarning, match="nearid could not measure at this step"):
        state.global_step = 4
        callback.on_step_end(None, state, control)
    assert len(Logged.entries) == 3


def test_a_wrong_probe_is_an_error_before_training(tmp_path, tokens):
    probe = Probe(np.zeros((60, 8)) + np.arange(8), tokens, layer=LAYER, pool="last")
    with pytest.raises(InputError, match="constant"):
        trained(tmp_path, tokens, probe)
    with pytest.raises(InputError, match="every"):
        IdentifiabilityCallback(None, probe, every=0)
