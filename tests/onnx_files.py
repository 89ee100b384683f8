"""Small ONNX files for tests, written node by node."""

import numpy as np

WEIGHTS = {
    "w": np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32),
    "v": np.random.default_rng(1).normal(size=(4, 2)).astype(np.float32),
}


def save(path, nodes, inputs, outputs, weights=WEIGHTS, domains=("",)):
    """Write a graph of nodes (operator, inputs, outputs, name, attributes); inputs have axes, or (type, axes)."""
    import onnx
    from onnx import helper, numpy_helper

    made = []
    for operator, taken, given, name, *attributes in nodes:
        made.append(helper.make_node(operator, taken, given, name=name, **(attributes[0] if attributes else {})))
    declared = []
    for name, axes in inputs.items():
        kind, axes = axes if isinstance(axes, tuple) else ("FLOAT", axes)
        declared.append(helper.make_tensor_value_info(name, getattr(onnx.TensorProto, kind), axes))
        # A number has a shape too: one without axes.
        declared[-1].type.tensor_type.shape.SetInParent()
    used = {name for _, taken, *_ in nodes for name in taken}
    graph = helper.make_graph(
        made,
        "graph",
        declared,
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(w, name) for name, w in weights.items() if name in used],
    )
    opsets = [helper.make_opsetid(domain, 17 if not domain else 1) for domain in domains]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def dense(path, rows="n"):
    """y = relu(x w) v of rows of 3, with slashes, points and colons in names."""
    nodes = [
        ("MatMul", ["x", "w"], ["/enc/layer.0/MatMul_output_0"], "/enc/layer.0/MatMul"),
        ("Relu", ["/enc/layer.0/MatMul_output_0"], ["/enc/layer.0/Relu:0"], "/enc/layer.0/Relu"),
        ("MatMul", ["/enc/layer.0/Relu:0", "v"], ["y"], "/head/MatMul"),
    ]
    return save(path, nodes, {"x": [rows, 3]}, ["y"])


def recurrent(path):
    """state' = tanh(x w + state), y = state' v: states along the second axis, and a scale for all rows."""
    nodes = [
        ("MatMul", ["x", "w"], ["in"], "in"),
        ("Mul", ["in", "rate"], ["scaled"], "scale"),
        ("Add", ["scaled", "state"], ["sum"], "add"),
        ("Tanh", ["sum"], ["stateN"], "tanh"),
        ("MatMul", ["stateN", "v"], ["out"], "out"),
        ("Squeeze", ["out", "zero"], ["y"], "squeeze"),
    ]
    weights = {**WEIGHTS, "zero": np.array([0])}
    return save(path, nodes, {"x": ["n", 3], "state": [1, "n", 4], "rate": []}, ["y", "stateN"], weights)
