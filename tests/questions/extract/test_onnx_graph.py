"""ONNX files: layers by name, and hostile files refused with a sentence before anything of them runs."""

import numpy as np
import pytest

from nearid import extract
from nearid.base.errors import InputError

onnx = pytest.importorskip("onnx", reason="needs the extra onnx")
from nearid.questions.extract.onnx_graph import open_graph  # noqa: E402
from onnx_files import WEIGHTS, dense, recurrent, save  # noqa: E402


@pytest.fixture
def graph(tmp_path):
    return open_graph(dense(tmp_path / "net.onnx"))


def test_layers_are_outputs_of_nodes_and_patterns_have_parts(graph):
    first, second = "/enc/layer.0/MatMul_output_0", "/enc/layer.0/Relu:0"
    assert graph.tensors == [first, second, "y"]

    def names(*patterns):
        return [layer.name for layer in graph.layers(patterns)]

    assert names("enc/layer.0/*") == names("/enc/**") == names("**.layer.0.*") == [first, second]
    assert names("*") == ["y"] and names("**") == [first, second, "y"]
    # A colon of a name is no part; one after it is.
    assert names(second) == [second] and names("y:1", first) == [first, "y:1"]
    assert graph.layers(["output"])[0].tensor == "y"
    with pytest.raises(InputError, match=r"nothing named 'enc/layer.1/\*' .*Did you mean 'enc.layer.0.\*'"):
        names("enc/layer.1/*")
    with pytest.raises(InputError, match="nothing named 'y:first'"):
        names("y:first")


def test_default_layers_are_numbered_blocks_or_nodes_with_weights(tmp_path, graph):
    assert [layer.name for layer in graph.layers(None)] == ["/enc/layer.0/MatMul_output_0", "y"]
    deep = [("Relu", ["x" if k == 0 else f"h{k - 1}b"], [f"h{k}a"], f"/blocks.{k}/Relu") for k in range(3)]
    deep = [n for k, n in enumerate(deep) for n in (n, ("Tanh", [f"h{k}a"], [f"h{k}b"], f"/blocks.{k}/Tanh"))]
    blocks = open_graph(save(tmp_path / "deep.onnx", deep, {"x": ["n", 3]}, ["h2b"]))
    assert [layer.name for layer in blocks.layers(None)] == ["h0b", "h1b", "h2b"]
    wide = [("Gemm", ["x" if k == 0 else f"g{k - 1}", "q"], [f"g{k}"], f"gemm{k}") for k in range(40)]
    many = open_graph(save(tmp_path / "wide.onnx", wide, {"x": ["n", 3]}, ["g39"], {"q": np.eye(3, dtype=np.float32)}))
    names = [layer.name for layer in many.layers(None)]
    assert len(names) == 16 and names[0] == "g0" and names[-1] == "g39"


def test_what_is_inside_a_branch_is_told(tmp_path):
    from onnx import TensorProto, helper

    branches = {}
    for name, operator in (("then_branch", "Relu"), ("else_branch", "Tanh")):
        out = helper.make_tensor_value_info(f"{name}_y", TensorProto.FLOAT, None)
        branches[name] = helper.make_graph([helper.make_node(operator, ["x"], [f"{name}_y"])], name, [], [out])
    nodes = [
        ("ReduceSum", ["x"], ["sum"], "sum", {"keepdims": 0}),
        ("Greater", ["sum", "zero"], ["up"], "greater"),
        ("If", ["up"], ["y"], "choice", branches),
    ]
    graph = open_graph(save(tmp_path / "if.onnx", nodes, {"x": ["n", 3]}, ["y"], {"zero": np.float32(0)}))
    with pytest.raises(InputError, match=r"then_branch_y of if.onnx is inside a branch or loop of the node choice"):
        graph.layers(["then_branch_y"])


def test_what_is_carried_must_be_there(tmp_path):
    graph = open_graph(recurrent(tmp_path / "net.onnx"))
    assert graph.carried({"state": "stateN"}) == {"state": "stateN"} and graph.carried(None) == {}
    with pytest.raises(InputError, match=r"nothing named 'sate' .*Did you mean 'state'"):
        graph.carried({"sate": "stateN"})
    with pytest.raises(InputError, match=r"nothing named 'statN' .*Did you mean 'stateN'"):
        graph.carried({"state": "statN"})


def external(path, location, **told):
    """The net with its first weights in another file."""
    model = onnx.load(dense(path))
    weights = model.graph.initializer[0]
    weights.ClearField("raw_data")
    weights.data_location = onnx.TensorProto.EXTERNAL
    for key, value in {"location": location, "offset": 0, "length": 48, **told}.items():
        weights.external_data.add(key=key, value=str(value))
    onnx.save(model, path)


def cut(path):
    whole = dense(path).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])


def linked(path):
    external(path, "link.bin")
    (path.parent / "link.bin").symlink_to(path.parent.parent / "w.bin")


HOSTILE = {
    "a custom operator": (
        lambda p: save(
            p, [("Evil", ["x"], ["y"], "e", {"domain": "my.ops"})], {"x": [2]}, ["y"], domains=("", "my.ops")
        ),
        r"uses the operator Evil of 'my.ops' \(node e\), which needs a custom library. nearid never loads one",
    ),
    "an unknown operator": (lambda p: save(p, [("Evil", ["x"], ["y"], "e")], {"x": [2]}, ["y"]), "No Op registered"),
    "truncated": (cut, "is not a whole ONNX file"),
    "text": (lambda p: p.write_text("not a model\n" * 99), "is not a whole ONNX file"),
    "nothing": (lambda p: p.write_bytes(b""), "has 0 bytes"),
    "zeros": (lambda p: p.write_bytes(bytes(999)), "is not a whole ONNX file"),
    "no network": (lambda p: onnx.save(onnx.ModelProto(ir_version=8), p), "contains no network"),
    "data above": (lambda p: external(p, "../w.bin"), r"stores the weights w in '../w.bin', outside of its own folder"),
    "data anywhere": (lambda p: external(p, "/etc/passwd"), "outside of its own folder"),
    "data behind a link": (linked, "outside of its own folder"),
    "data in memory": (lambda p: external(p, "*/_ORT_MEM_ADDR_/*"), "outside of its own folder"),
    "data that is missing": (lambda p: external(p, "no.bin"), "in 'no.bin', which is not there"),
    "data that is short": (lambda p: external(p, "w.bin", length=4800), "bytes 0 to 4,800, but that file has 48 bytes"),
    "data before the file": (lambda p: external(p, "w.bin", offset=-8), "bytes -8 to 40"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_files_are_refused_and_leave_nothing(tmp_path, kind):
    make, message = HOSTILE[kind]
    folder = tmp_path / "models"
    folder.mkdir()
    for place in (folder, tmp_path):
        (place / "w.bin").write_bytes(WEIGHTS["w"].tobytes())
    make(folder / "net.onnx")
    with pytest.raises(InputError, match=message):
        extract(folder / "net.onnx", np.ones((4, 3), np.float32), out=tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["models", "w.bin"]


def test_no_cut_of_a_file_passes(tmp_path):
    whole = dense(tmp_path / "net.onnx").read_bytes()
    for size in range(len(whole)):
        (tmp_path / "cut.onnx").write_bytes(whole[:size])
        try:
            open_graph(tmp_path / "cut.onnx")
        except InputError:
            continue
        # What is left of the end are the versions of operators, without which nothing runs.
        assert not onnx.load(tmp_path / "cut.onnx").opset_import


def test_weights_beside_the_model_count_in_its_hash(tmp_path):
    (tmp_path / "w.bin").write_bytes(WEIGHTS["w"].tobytes())
    external(tmp_path / "net.onnx", "w.bin")
    x = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    rows = extract(tmp_path / "net.onnx", x, layers="/enc/layer.0/MatMul_output_0")
    np.testing.assert_allclose(next(iter(rows.values())).read(0, 5), x @ WEIGHTS["w"], rtol=1e-5)
    before = open_graph(tmp_path / "net.onnx").fingerprint()
    (tmp_path / "w.bin").write_bytes((2 * WEIGHTS["w"]).tobytes())
    assert open_graph(tmp_path / "net.onnx").fingerprint() != before
