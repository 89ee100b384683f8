"""ONNX models: the same numbers as numpy's, in batches of any and of a fixed size, and with states."""

import json
import os
import signal
import sys
import time
from pathlib import Path
from subprocess import Popen

import numpy as np
import pytest
import torch

from nearid import extract, open_rows
from nearid.base.errors import InputError

pytest.importorskip("onnxruntime", reason="needs the extra onnx")
pytest.importorskip("onnx", reason="needs the extra onnx")
from onnx_files import WEIGHTS, dense, recurrent, save
from tiny_texts import SENTENCES, bert_folder

W, V = WEIGHTS["w"], WEIGHTS["v"]
RELU = "/enc/layer.0/Relu:0"


@pytest.fixture
def x(rng):
    return rng.normal(size=(7, 3)).astype(np.float32)


@pytest.mark.parametrize("rows", ["n", 1, 2, 3, 4, 50])
@pytest.mark.parametrize("batch_size", [3, 128])
def test_rows_are_those_of_numpy_whatever_the_batches(tmp_path, x, rows, batch_size):
    taken = extract(dense(tmp_path / "net.onnx", rows), x, layers=[RELU, "output"], batch_size=batch_size)
    hidden = np.maximum(x @ W, 0)
    np.testing.assert_allclose(taken[RELU].read(0, 7), hidden, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(taken["y"].read(0, 7), hidden @ V, rtol=1e-5, atol=1e-6)
    assert taken.alerts == () and taken.provenance["versions"]["onnxruntime"]


def test_an_open_axis_may_still_take_one_input_alone(tmp_path, x):
    nodes = [("Reshape", ["x", "one"], ["r"], "reshape"), ("MatMul", ["r", "w"], ["y"], "dense")]
    save(tmp_path / "net.onnx", nodes, {"x": ["n", 3]}, ["y"], {**WEIGHTS, "one": np.array([1, 3])})
    np.testing.assert_allclose(extract(tmp_path / "net.onnx", x)["y"].read(0, 7), x @ W, rtol=1e-5, atol=1e-6)


def test_states_go_from_step_to_step(tmp_path, rng):
    x, rate = rng.normal(size=(5, 6, 3)).astype(np.float32), np.full(5, 0.5, np.float32)
    mask = np.arange(6) < np.array([6, 4, 1, 5, 2])[:, None]
    data = {"x": x, "rate": rate, "attention_mask": mask.astype(np.int64)}
    model = recurrent(tmp_path / "net.onnx")
    taken = extract(model, data, carry={"state": "stateN"}, layers="stateN,y", pool="tokens", batch_size=2)
    state, states = np.zeros((5, 4)), []
    for step in range(6):
        state = np.tanh(0.5 * x[:, step] @ W + state)
        states.append(state)
    wanted = np.stack(states, 1)[mask]
    np.testing.assert_allclose(taken["stateN"].read(0, len(wanted)), wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(taken["y"].read(0, len(wanted)), wanted @ V, rtol=1e-4, atol=1e-5)
    # Steps of one sequence belong together, and are named after it.
    assert taken["y"].blocks.tolist() == np.repeat(np.arange(5), mask.sum(1)).tolist()
    assert taken["y"].ids[:7].tolist() == [0, 1, 2, 3, 4, 5, 1 << 20]
    last = extract(model, data, carry={"state": "stateN"}, layers="stateN", pool="last")["stateN"]
    np.testing.assert_allclose(last.read(0, 5)[2], states[0][2], rtol=1e-4, atol=1e-5)
    # From a state that is given, and one step at a time without carrying.
    begun = extract(
        model, {**data, "state": np.ones((5, 1, 4))}, carry={"state": "stateN"}, layers="stateN", pool="cls"
    )
    alone = extract(model, {"x": x[:, 0], "rate": rate, "state": np.ones((5, 1, 4))}, layers="stateN:0")
    first = np.tanh(0.5 * x[:, 0] @ W + 1)
    for rows in (begun["stateN"], alone["stateN:0"]):
        np.testing.assert_allclose(rows.read(0, 5), first, rtol=1e-4, atol=1e-5)


def test_recurrent_nodes_give_a_row_for_each_step(tmp_path, rng):
    """Against torch's own GRU with the same weights; gates come in another order."""
    gru = torch.nn.GRU(3, 4, batch_first=True)

    def gates(w):
        reset, update, new = w.detach().chunk(3)
        return torch.cat([update, reset, new]).numpy()

    weights = {
        "W": gates(gru.weight_ih_l0)[None],
        "R": gates(gru.weight_hh_l0)[None],
        "B": np.concatenate([gates(gru.bias_ih_l0), gates(gru.bias_hh_l0)])[None],
    }
    nodes = [
        ("Transpose", ["x"], ["t"], "turn", {"perm": [1, 0, 2]}),
        ("GRU", ["t", "W", "R", "B"], ["all", "last"], "gru", {"hidden_size": 4, "linear_before_reset": 1}),
    ]
    save(tmp_path / "net.onnx", nodes, {"x": ["n", "t", 3]}, ["all"], weights)
    x = rng.normal(size=(5, 6, 3)).astype(np.float32)
    every, last = gru(torch.from_numpy(x))
    taken = extract(tmp_path / "net.onnx", x, layers="all,last", pool="last")
    np.testing.assert_allclose(taken["all"].read(0, 5), every[:, -1].detach(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(taken["last"].read(0, 5), last[0].detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("batch", [1, 2, 5])
@pytest.mark.parametrize("t", [1, 2, 5])
def test_a_fixed_batch_is_told_from_directions_and_steps_of_its_size(tmp_path, rng, batch, t):
    """Against the same graph with an open axis, run one input at a time."""
    weights = {name: rng.normal(size=(2, 12, k)).astype(np.float32) for name, k in (("W", 4), ("R", 3))}
    nodes = [
        ("Transpose", ["x"], ["turned"], "turn", {"perm": [1, 0, 2]}),
        ("LSTM", ["turned", "W", "R"], ["Y", "Yh", "Yc"], "lstm", {"hidden_size": 3, "direction": "bidirectional"}),
        ("Tanh", ["turned"], ["steps"], "steps"),
    ]
    for name, size in (("fixed", batch), ("open", "n")):
        save(tmp_path / f"{name}.onnx", nodes, {"x": [size, t, 4]}, ["Y", "Yh", "Yc", "steps"], weights)
    x = rng.normal(size=(6, t, 4)).astype(np.float32)
    # Inputs that differ at their last step alone tell no axis from that of the steps by where the change is.
    for data in (x, np.concatenate([np.repeat(x[:1, :-1], 6, 0), x[:, -1:]], 1)):
        options = {"layers": "Y,Yh,Yc,steps", "pool": "last"}
        found, wanted = (extract(tmp_path / f"{name}.onnx", data, **options) for name in ("fixed", "open"))
        for name, rows in wanted.items():
            np.testing.assert_allclose(found[name].read(0, 6), rows.read(0, 6), rtol=1e-5, atol=1e-6)


def test_a_state_of_a_fixed_batch_has_the_axes_of_the_output_that_it_is(tmp_path, rng):
    """As many layers of states as inputs."""
    nodes = [
        ("MatMul", ["x", "w"], ["in"], "in"),
        ("Add", ["in", "state"], ["sum"], "add"),
        ("Mul", ["sum", "half"], ["stateN"], "halve"),
    ]
    weights = {**WEIGHTS, "half": np.array([[[0.5]], [[0.25]]], np.float32)}
    save(tmp_path / "net.onnx", nodes, {"x": [2, 3], "state": [2, 2, 4]}, ["stateN"], weights)
    x = rng.normal(size=(5, 3, 3)).astype(np.float32)
    found = extract(tmp_path / "net.onnx", {"x": x}, carry={"state": "stateN"}, layers="stateN:0,stateN:1", pool="last")
    for part, share in enumerate((0.5, 0.25)):
        state = np.zeros((5, 4))
        for step in range(3):
            state = share * (x[:, step] @ W + state)
        np.testing.assert_allclose(found[f"stateN:{part}"].read(0, 5), state, rtol=1e-4, atol=1e-5)


def test_a_tensor_of_a_fixed_batch_without_an_axis_of_inputs_is_refused(tmp_path, x):
    """Products of all pairs of inputs, and a table that has as many rows as there are inputs."""
    nodes = [
        ("Transpose", ["x"], ["turned"], "turn", {"perm": [1, 0]}),
        ("MatMul", ["x", "turned"], ["pairs"], "pairs"),
        ("Tanh", ["w"], ["table"], "table"),
        ("MatMul", ["x", "w"], ["y"], "dense"),
    ]
    save(tmp_path / "net.onnx", nodes, {"x": [3, 3]}, ["pairs", "table", "y"])
    for layer in ("pairs", "table"):
        with pytest.raises(InputError, match=f"The layer {layer} has no batch axis"):
            extract(tmp_path / "net.onnx", x, layers=layer)
    np.testing.assert_allclose(
        extract(tmp_path / "net.onnx", x, layers="y")["y"].read(0, 7), x @ W, rtol=1e-5, atol=1e-6
    )


def test_a_graph_without_an_axis_for_inputs_runs_one_by_one(tmp_path, rng):
    nodes = [("CumSum", ["x", "zero"], ["s"], "sum"), ("MatMul", ["s", "w"], ["y"], "dense")]
    model = save(tmp_path / "net.onnx", nodes, {"x": ["time", 3]}, ["y"], {**WEIGHTS, "zero": np.array(0)})
    x = rng.normal(size=(5, 6, 3)).astype(np.float32)
    wanted = x.cumsum(1) @ W
    taken = extract(model, x, pool="tokens")
    np.testing.assert_allclose(taken["y"].read(0, 30), wanted.reshape(30, 4), rtol=1e-4, atol=1e-5)
    # With time as the axis of inputs, rows depend on the batch.
    (alert,) = extract(model, x[0], layers="y").alerts
    assert alert.code == "inputs_interact" and "(inputs, time, ...)" in alert.message


def test_three_axes_after_a_convolution_are_a_map(tmp_path, rng):
    kernel = rng.normal(size=(4, 3, 1)).astype(np.float32)
    nodes = [("Conv", ["x", "k"], ["c"], "conv"), ("Relu", ["c"], ["y"], "relu")]
    save(tmp_path / "net.onnx", nodes, {"x": ["n", 3, "t"]}, ["y"], {"k": kernel})
    x = rng.normal(size=(5, 3, 6)).astype(np.float32)
    wanted = np.einsum("oc,nct->not", kernel[:, :, 0], x).mean(2)
    np.testing.assert_allclose(extract(tmp_path / "net.onnx", x)["c"].read(0, 5), wanted, rtol=1e-4, atol=1e-5)


def test_types_are_those_that_the_graph_declares(tmp_path, rng):
    table = rng.normal(size=(9, 4)).astype(np.float32)
    nodes = [("Gather", ["table", "ids"], ["y"], "embed")]
    save(tmp_path / "net.onnx", nodes, {"ids": ("INT32", ["n", "t"])}, ["y"], {"table": table})
    ids = rng.integers(0, 9, (5, 6))
    mask = np.arange(6) < np.array([6, 4, 1, 5, 2])[:, None]
    rows = extract(tmp_path / "net.onnx", ids, mask=mask.astype(np.int64))["y"].read(0, 5)
    wanted = [table[row[real]].mean(0) for row, real in zip(ids, mask, strict=True)]
    np.testing.assert_allclose(rows, wanted, rtol=1e-5, atol=1e-6)
    with pytest.raises(InputError, match=r"input ids of net.onnx takes int32, but the data contains fractions"):
        extract(tmp_path / "net.onnx", ids + 0.5)


def test_bytes_are_left_as_they_are_where_the_graph_takes_them(tmp_path, rng):
    nodes = [("Cast", ["x"], ["f"], "cast", {"to": 1}), ("ReduceMean", ["f"], ["y"], "mean", {"axes": [1, 2]})]
    model = save(tmp_path / "net.onnx", nodes, {"x": ("UINT8", ["n", 4, 4, 3])}, ["y"])
    x = rng.integers(0, 256, (5, 4, 4, 3), dtype=np.uint8)
    rows = extract(model, x, layers="y", pool="flatten")["y"].read(0, 5)
    np.testing.assert_allclose(rows, x.mean((1, 2)), rtol=1e-5)
    with pytest.raises(InputError, match=r"net.onnx takes whole numbers without scaling. Leave out scale"):
        extract(model, x, mean=0.5)


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ({}, {}, r"also takes rate, state: give a dict .*x: float32 \(any, 3\), state: float32 \(1, any, 4\), rate"),
        ({"more": np.ones(5)}, {"carry": {"state": "stateN"}}, "has no input named more"),
        ({"rate": np.arange(5.0)}, {"carry": {"state": "stateN"}}, "takes one value of rate for all inputs of a batch"),
        ({"rate": np.ones(5)}, {"carry": {"state": "stateN"}}, r"has the axes \(inputs, steps, ...\)"),
        ({"rate": np.ones(5), "state": np.ones((5, 1, 9))}, {}, r"cannot take x \(.*state \(1, \d, 9\)"),
        ({"rate": np.ones(5), "state": np.ones((5, 1, 4))}, {"layers": "stateN:1"}, "which has no part 1"),
        ({"rate": np.ones(5), "state": np.ones((5, 1, 4))}, {"device": "cuda"}, "only on the CPU, not on cuda"),
    ],
)
def test_inputs_that_do_not_fit_get_a_sentence(tmp_path, data, options, message):
    with pytest.raises(InputError, match=message):
        extract(recurrent(tmp_path / "net.onnx"), {"x": np.ones((5, 3), np.float32), **data}, **options)


def test_carry_is_for_onnx(x):
    with pytest.raises(InputError, match="carry is for ONNX files"):
        extract(torch.nn.Linear(3, 2), x, carry={"state": "stateN"})


WAITING = """
import itertools, time
from nearid.questions.extract import onnx_network, store
store.SECONDS = 0.0
call, calls = onnx_network.OnnxNetwork.call, itertools.count()
# It runs at full speed until the tenth call, and there waits for the signal.
onnx_network.OnnxNetwork.call = lambda self, inputs: next(calls) == 10 and time.sleep(600) or call(self, inputs)
from nearid.cli.app import main
main()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_interrupted_and_resumed_equals_undisturbed(tmp_path, rng, contents, number):
    dense(tmp_path / "net.onnx")
    np.save(tmp_path / "x.npy", rng.normal(size=(600, 3)).astype(np.float32))
    command = ["extract", "net.onnx", "x.npy", "--batch-size", "20", "--layers", "**", "-o"]
    progress = tmp_path / "out.partial" / "progress.json"
    with Popen([sys.executable, "-c", WAITING, *command, "out"], cwd=tmp_path) as child:
        deadline = time.monotonic() + 200
        while time.monotonic() < deadline and child.poll() is None:
            if progress.exists() and json.loads(progress.read_text())["state"]["inputs"] >= 60:
                break
            time.sleep(0.02)
        os.kill(child.pid, number)
    assert child.returncode == (-9 if number == signal.SIGKILL else 130) and not (tmp_path / "out").exists()
    assert 60 <= json.loads(progress.read_text())["state"]["inputs"] < 600
    for out in ("out", "whole"):
        options = {"layers": "**", "batch_size": 20, "out": tmp_path / out}
        extract(tmp_path / "net.onnx", tmp_path / "x.npy", **options)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_a_layer_with_slashes_is_compared_from_the_command_line(tmp_path, nearid, rng):
    dense(tmp_path / "net.onnx")
    np.save(tmp_path / "x.npy", rng.normal(size=(90, 3)).astype(np.float32))
    done = nearid("extract", "net.onnx", "x.npy", "-o", "run", "--layers", "enc/**", "--json")
    assert done.returncode == 0 and list(json.loads(done.stdout)["layers"]) == ["/enc/layer.0/MatMul_output_0", RELU]
    done = nearid("compare", f"run:{RELU}", f"run:{RELU}", "--json", "--permutations", "1")
    assert done.returncode == 0 and json.loads(done.stdout)["verdict"]["group"] == "permutation"
    file = open_rows(tmp_path / "run" / "_enc_layer.0_Relu_0.npy")
    np.testing.assert_array_equal(file.read(0, 90), open_rows(f"{tmp_path}/run:{RELU}").read(0, 90))


@pytest.mark.filterwarnings("ignore")
def test_an_exported_encoder_gives_the_hidden_states_of_its_module(tmp_path, rng):
    """Default layers are the blocks, and padding on either side leaves them as they are."""
    transformers = pytest.importorskip("transformers", reason="needs the extra hf")
    sizes = {"hidden_size": 8, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 8}
    config = transformers.BertConfig(vocab_size=30, **sizes, attn_implementation="eager")
    module = transformers.BertModel(config, add_pooling_layer=False).eval()
    ids, mask = torch.randint(1, 30, (7, 6)), torch.arange(6) < torch.tensor([6, 4, 1, 5, 2, 3, 6])[:, None]
    exported(module, tmp_path / "bert.onnx")
    for flip in (False, True):
        given = {"input_ids": ids, "attention_mask": mask}
        data = {name: (x.flip(1) if flip else x).long().numpy() for name, x in given.items()}
        layers, states = extract(tmp_path / "bert.onnx", data, batch_size=4), extract(module, data)
        assert len(layers) == 3 and layers.alerts == ()
        for number, rows in enumerate(layers.values(), 1):
            wanted = states[f"hidden_states.{number}"].read(0, 7)
            np.testing.assert_allclose(rows.read(0, 7), wanted, rtol=1e-4, atol=1e-5)


class Whole(torch.nn.Module):
    """A transformers model as exporters take it: arguments by place, a tensor out."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, input_ids, attention_mask):
        return self.module(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


def exported(module, path):
    """Write a transformers encoder as a graph of tokens and mask."""
    names, ids = ["input_ids", "attention_mask"], torch.randint(1, 30, (3, 6))
    try:
        torch.onnx.export(
            Whole(module),
            (ids, torch.ones_like(ids)),
            path,
            input_names=names,
            output_names=["last"],
            dynamic_axes={name: {0: "n", 1: "t"} for name in (*names, "last")},
            dynamo=False,
        )
    except Exception as error:  # exporters come and go, and are not what is tested
        pytest.skip(f"torch cannot export here: {error}")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("pool", ["mean", "words"])
def test_texts_go_through_the_tokeniser_beside_an_onnx_file(tmp_path, pool):
    """As through the module that was exported."""
    transformers = pytest.importorskip("transformers", reason="needs the extra hf")
    folder = Path(bert_folder(tmp_path))
    module = transformers.BertModel.from_pretrained(folder, attn_implementation="eager", add_pooling_layer=False).eval()
    exported(module, folder / "model.onnx")
    found = extract(folder / "model.onnx", SENTENCES, layers="last", pool=pool)
    wanted = extract(folder, SENTENCES, layers="hidden_states.2", pool=pool)
    x, y = found["last"], wanted["hidden_states.2"]
    np.testing.assert_array_equal(x.ids, y.ids)
    np.testing.assert_allclose(x.read(0, x.shape[0]), y.read(0, y.shape[0]), rtol=1e-4, atol=1e-5)
    (folder / "tokenizer.json").unlink()
    with pytest.raises(InputError, match="tokeniser"):
        extract(folder / "model.onnx", SENTENCES, layers="last")


def test_nothing_is_padded_for_a_graph_without_a_mask(tmp_path, rng):
    """A mean over tokens inside of the graph is that of each text alone."""
    transformers = pytest.importorskip("transformers", reason="needs the extra hf")
    folder = Path(bert_folder(tmp_path))
    table = rng.normal(size=(150, 4)).astype(np.float32)
    nodes = [
        ("Gather", ["table", "input_ids"], ["embedded"], "embed"),
        ("ReduceMean", ["embedded"], ["y"], "mean", {"axes": [1], "keepdims": 0}),
    ]
    save(folder / "net.onnx", nodes, {"input_ids": ("INT64", ["n", "t"])}, ["y"], {"table": table})
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    wanted = [table[tokenizer(text)["input_ids"]].mean(0) for text in SENTENCES]
    np.testing.assert_allclose(
        extract(folder / "net.onnx", SENTENCES, layers="y")["y"].read(0, 10), wanted, rtol=1e-5, atol=1e-6
    )


def test_texts_for_a_graph_without_tokens_are_refused(tmp_path):
    with pytest.raises(InputError, match="does not take tokens of texts"):
        extract(dense(tmp_path / "net.onnx", "n"), SENTENCES)


# silero-vad 5.1.2 as unpacked by somebody; its package installs only beside torchaudio.
SILERO = Path(os.environ.get("NEARID_SILERO", "silero_vad.onnx"))


@pytest.mark.skipif(not SILERO.is_file(), reason="NEARID_SILERO does not name silero_vad.onnx of silero-vad 5.1.2")
def test_silero_is_run_as_its_own_package_does(rng):
    import onnxruntime

    x = 0.1 * rng.normal(size=(3, 5, 576)).astype(np.float32)
    data = {"input": x, "sr": np.full(3, 16000)}
    taken = extract(SILERO, data, carry={"state": "stateN"}, layers="stateN:0,output", pool="tokens")
    session = onnxruntime.InferenceSession(SILERO)
    for clip in range(3):
        state = np.zeros((2, 1, 128), np.float32)
        for step in range(5):
            feeds = {"input": x[clip, step : step + 1], "state": state, "sr": np.array(16000)}
            spoken, state = session.run(None, feeds)
            row = 5 * clip + step
            np.testing.assert_allclose(taken["stateN:0"].read(row, row + 1), state[0], atol=1e-5)
            np.testing.assert_allclose(taken["output"].read(row, row + 1), spoken, atol=1e-5)
