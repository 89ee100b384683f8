"""What is named as a model: told, and refused, before torch is imported."""

import json
import os
import subprocess
import sys
import time
from importlib.util import find_spec

import numpy as np
import pytest
from safetensors.numpy import save_file

from nearid.base.errors import InputError
from nearid.questions.extract.given import given_model, refuse_layers

needs_transformers = pytest.mark.skipif(find_spec("transformers") is None, reason="needs the extra hf")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Names of every kind, and a transformers folder of two blocks, as a checkpoint with a head has it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bert").mkdir()
    (tmp_path / "bert" / "config.json").write_text(json.dumps({"num_hidden_layers": 2}))
    blocks = {f"bert.encoder.layer.{k}.output.dense.weight": np.ones((2, 2)) for k in range(2)}
    save_file({**blocks, "cls.bias": np.ones(2)}, tmp_path / "bert" / "model.safetensors")
    (tmp_path / "empty").mkdir()
    (tmp_path / "mine" / "own").mkdir(parents=True)
    (tmp_path / "mine" / "own" / "config.json").write_text("{}")
    for name in ("w.pt", "net.onnx", "notes.txt", "my_makers.py"):
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("model", "options", "kind"),
    [
        ("my_makers:make", {}, "factory"),
        ("w.pt", {"factory": "my_makers:make"}, "weights"),
        ("net.onnx", {}, "onnx"),
        ("./bert", {"revision": "main"}, "folder"),
        ("google/bert", {"revision": "v1"}, "hub"),
    ],
)
@needs_transformers
def test_kinds(folder, model, options, kind):
    assert given_model(model, **options).kind == kind


REFUSED = [
    ("no.pt", {}, "There is no file no.pt"),
    ("no.onnx", {}, "There is no ONNX file no.onnx"),
    ("w.pt", {}, "contains only weights"),
    ("w.pt", {"factory": "nowhere.at_all:make"}, "No module named 'nowhere'"),
    ("w.pt", {"factory": "make"}, "the form package.module:function"),
    ("nowhere:make", {}, "No module named 'nowhere'"),
    ("my_makers:make", {"prefix": "a."}, "is already a factory"),
    ("notes.txt", {}, "is not a file of weights: .* or .onnx are expected"),
    ("net.onnx", {"prefix": "a."}, "are for a file of weights"),
    ("net.onnx", {"revision": "main"}, "is for a transformers model"),
    ("./empty", {}, "not the folder of a transformers model"),
    ("./nowhere", {}, "There is no file or folder ./nowhere.$"),
    ("./brt", {}, "There is no file or folder ./brt. Did you mean bert"),
    ("beert", {}, "There is no folder beert. Did you mean bert"),
    ("mine/roberta", {}, r"There is no folder mine/roberta\. Models in mine: own\. A model on the hub has"),
]


@pytest.mark.parametrize(("model", "options", "message"), REFUSED)
def test_refusals(folder, model, options, message):
    with pytest.raises(InputError, match=message):
        given_model(model, **options)


@pytest.mark.parametrize("layer", ["hidden_states.2", "encoder.layer.1", "encoder.layer.*", "encoder.layer.0.dropout"])
@needs_transformers
def test_layers_that_may_be_there_pass(folder, layer):
    refuse_layers(given_model("./bert"), [layer])


@pytest.mark.parametrize("layer", ["hidden_states.3", "encoder.layer.2", "encoder.layer.2.output:0"])
@needs_transformers
def test_numbers_that_are_not_there_are_refused(folder, layer):
    name = layer.partition(":")[0]
    with pytest.raises(InputError, match=f"The model has nothing named '{name}'"):
        refuse_layers(given_model("./bert"), [layer])


@needs_transformers
def test_every_module_of_a_model_passes(tmp_path):
    """Also those without weights, as activations between numbered convolutions."""
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("torch")
    config = transformers.RegNetConfig(
        embedding_size=4, hidden_sizes=[4, 8], depths=[1, 2], groups_width=4, layer_type="y"
    )
    model = transformers.RegNetModel(config)
    model.save_pretrained(tmp_path)
    layers = [name for name, _ in model.named_modules() if name]
    assert "encoder.stages.0.layers.0.layer.2.attention.1" in layers
    refuse_layers(given_model(str(tmp_path)), layers)


@needs_transformers
@pytest.mark.parametrize("weights", [["0.weight"], ["0.weight", "1.weight"], ["0.a.weight", "2.a.weight"], ["0.a.b"]])
def test_numbers_that_may_be_of_modules_without_weights_pass(tmp_path, weights):
    (tmp_path / "config.json").write_text("{}")
    names = [f"net.{name}" for name in weights] + [f"sub.xnet.{number}.a.weight" for number in range(2)]
    save_file({name: np.ones(2) for name in names}, tmp_path / "model.safetensors")
    refuse_layers(given_model(str(tmp_path)), ["net.1", "net.3"])


@pytest.mark.parametrize(
    "command",
    [
        "extract no.pt x.npy -o out",
        "extract net.onnx x.npy -o out",
        "extract ./bert x.npy -o out --layers hidden_states.3",
        "extract nowhere:make x.npy -o out",
        "lipschitz no.pt --normal 5",
    ],
)
def test_commands_refuse_without_torch(folder, command):
    """What they import is looked at, as seconds depend on the machine; and processor time leaves a wide margin."""
    code = "import sys, time; from nearid.cli.app import main; import nearid.cli.app as app\n"
    code += "def leave(message, code): print(message, [m for m in ('torch', 'transformers') if m in sys.modules], "
    code += "time.process_time()); raise SystemExit(code)\napp.leave = leave; main()"
    env = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    begun = time.monotonic()
    run = [sys.executable, "-c", code, *command.split()]
    done = subprocess.run(run, capture_output=True, text=True, cwd=folder, env=env, timeout=120)
    assert done.returncode == 2, done.stderr
    message, _, rest = done.stdout.strip().partition("[")
    assert message.startswith("nearid: ") and rest.startswith("] ")
    assert float(rest[2:]) < 3 and time.monotonic() - begun < 60
