"""An ONNX file: checked before anything of it runs, its inputs, and its layers by the names of node outputs."""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from nearid.arrays.names import chosen, not_found, split_part
from nearid.arrays.reading import damage_told, reached
from nearid.base.errors import InputError
from nearid.base.limits import check_memory, readable

# Operators that are part of onnxruntime. Functions that a model defines consist of them.
DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "ai.onnx.preview.training", "com.microsoft")
# Largest size of an ONNX file; larger models store their weights in separate files.
LARGEST = (1 << 31) - 1
# Copies in memory: the bytes, the graph and the session.
COPIES = 3
# A name of external data that stands for an address in memory.
ADDRESS = "_ORT_MEM_ADDR_"
# The first output, where no tensor has this name.
WHOLE = "output"
# Operators with weights, whose outputs are the default layers, and their largest number.
WEIGHTED = ("Conv", "ConvTranspose", "Gemm", "MatMul", "LSTM", "GRU", "RNN", "QLinearConv", "MatMulInteger")
MOST = 16
# Operators whose output of three axes has channels before positions, and those that give tokens.
MAPS = ("Conv", "ConvTranspose", "BatchNormalization", "InstanceNormalization", "MaxPool", "AveragePool", "QLinearConv")
TOKENS = ("Gemm", "MatMul", "LayerNormalization", "Gather", "LSTM", "GRU", "RNN", "Attention", "Transpose")


class Declared(NamedTuple):
    """Declaration of an input: numpy's name of its type, and its axes (None for any size).

    If no axes are declared, `axes` is None.
    """

    dtype: str
    axes: tuple[int | None, ...] | None

    def __str__(self) -> str:
        axes = "" if self.axes is None else f" ({', '.join('any' if a is None else str(a) for a in self.axes)})"
        return f"{self.dtype}{axes}"


class Layer(NamedTuple):
    """A tensor of the graph to extract; `part` is an index along its first axis after the batch axis."""

    name: str
    tensor: str
    part: int | None
    wanted: bool


@dataclass(frozen=True)
class OnnxGraph:
    """A graph that was read and checked.

    Attributes
    ----------
    proto : onnx.ModelProto
        Content of the file; weights in other files are not loaded.
    """

    path: Path
    proto: Any

    @property
    def name(self) -> str:
        """What people are shown."""
        return self.path.name

    @cached_property
    def inputs(self) -> dict[str, Declared]:
        """Inputs of the model, without weights (old files list weights among the inputs)."""
        weights = {tensor.name for tensor in self.proto.graph.initializer}
        return {value.name: _declared(value) for value in self.proto.graph.input if value.name not in weights}

    @cached_property
    def outputs(self) -> list[str]:
        """Names of the outputs of the model."""
        return [value.name for value in self.proto.graph.output]

    @cached_property
    def tensors(self) -> list[str]:
        """Outputs of nodes in the order in which they are computed, constants left out."""
        made = [name for node in self.proto.graph.node if node.op_type != "Constant" for name in node.output if name]
        return [*made, *(name for name in self.outputs if name not in set(made))]

    def layers(self, patterns: Sequence[str] | None) -> list[Layer]:
        """The tensors that match patterns, in the order in which they are computed."""
        if patterns is None:
            return [Layer(name, name, None, False) for name in self._usual()]
        found: dict[str, Layer] = {}
        for pattern in patterns:
            layer, part = split_part(pattern, self.tensors)
            if layer == WHOLE and WHOLE not in self.tensors:
                layer = self.outputs[0]
            if layer in self._inner:
                raise InputError(
                    f"The layer {layer} of {self.name} is inside a branch or loop of the node {self._inner[layer]} and "
                    f"cannot be extracted. Choose among the outputs: {', '.join(self.outputs)}."
                )
            for name in chosen(self.name, layer, self.tensors):
                label = name if part is None else f"{name}:{part}"
                found.setdefault(label, Layer(label, name, self._place(pattern, part), name == layer))
        order = {name: at for at, name in enumerate(self.tensors)}
        return sorted(found.values(), key=lambda each: order[each.tensor])

    def _place(self, pattern: str, part: str | None) -> int | None:
        if part is None:
            return None
        if not part.isdecimal():
            raise not_found(self.name, "layers", pattern, self.tensors)
        return int(part)

    def _usual(self) -> list[str]:
        """Default layers: outputs of the numbered blocks, or else of nodes with weights; and the last output.

        Exporters name a node after its module, such as /encoder/layer.0/output/Add.
        """
        blocks: dict[str, str] = {}
        for node in self.proto.graph.node:
            scope = re.match(r"(.*?[./]\d+)/", node.name)
            if scope and node.output and node.op_type != "Constant":
                blocks[scope[1]] = node.output[0]
        names = list(blocks.values())
        if len(names) < 2:
            names = [node.output[0] for node in self.proto.graph.node if node.op_type in WEIGHTED and node.output]
        if len(names) > MOST:
            names = [names[round(at * (len(names) - 1) / (MOST - 1))] for at in range(MOST)]
        return list(dict.fromkeys([*names, *self.outputs]))

    @cached_property
    def maps(self) -> frozenset[str]:
        """Tensors whose three axes are (n, channels, positions), by the operators that they come from."""
        found: set[str] = set()
        for node in self.proto.graph.node:
            is_map = node.op_type in MAPS or (node.op_type not in TOKENS and any(name in found for name in node.input))
            found.update(node.output if is_map else ())
        return frozenset(found)

    @cached_property
    def recurrent(self) -> dict[str, int]:
        """Outputs of recurrent nodes, and the axis from which directions and units are the columns of a row."""
        nodes = [node for node in self.proto.graph.node if node.op_type in ("LSTM", "GRU", "RNN")]
        return {name: 2 if at == 0 else 1 for node in nodes for at, name in enumerate(node.output) if name}

    def carried(self, carry: Mapping[str, str] | None) -> dict[str, str]:
        """Check and return the inputs that take an output of the previous step."""
        pairs = {str(taking): str(giving) for taking, giving in (carry or {}).items()}
        for taking, giving in pairs.items():
            if taking not in self.inputs:
                raise not_found(self.name, "carry", taking, self.inputs)
            if giving not in self.tensors:
                raise not_found(self.name, "carry", giving, [*self.outputs, *self.tensors])
        if pairs and not self.inputs.keys() - pairs.keys():
            raise InputError(f"carry names all inputs of {self.name}. At least one input must come from the data.")
        return pairs

    @cached_property
    def _inner(self) -> dict[str, str]:
        """Tensors inside branches and loops, with their node."""
        outer = set(self.tensors)
        return {
            name: node.name or node.op_type
            for node in self.proto.graph.node
            for inner in _nodes_in(node)
            for name in inner.output
            if name not in outer
        }

    @cached_property
    def parameters(self) -> int:
        """Numbers in the weights."""
        return sum(math.prod(tensor.dims) for tensor in _tensors(self.proto))

    def fingerprint(self) -> str:
        """SHA-256 of the file and of the files beside it that hold its weights."""
        digest = hashlib.sha256()
        for place in (self.path, *sorted(external_files(self.path, self.proto))):
            with reached(place), open(place, "rb") as file:
                while chunk := file.read(1 << 20):
                    digest.update(chunk)
        return digest.hexdigest()


def open_graph(path: Path) -> OnnxGraph:
    """Open an ONNX file; refuse damaged files, custom operators, and weights outside of its folder."""
    try:
        import onnx
    except ModuleNotFoundError:
        raise InputError(f"{path.name} is read with onnx and onnxruntime: pip install 'nearid[onnx]'.") from None
    with reached(path):
        size = path.stat().st_size
        if not 0 < size <= LARGEST:
            raise InputError(f"{path.name} has {size:,} bytes, but an ONNX file has between 1 byte and 2 GB.")
        check_memory(path.name, COPIES * size, "Run it on a machine with more.")
        with damage_told(path.name, "ONNX file"):
            proto = onnx.load_model(path, format="protobuf", load_external_data=False)
    if not proto.graph.node or not proto.graph.output:
        raise InputError(f"{path.name} is not a whole ONNX file: it contains no network. Write or copy it again.")
    _refuse_operators(path.name, proto)
    external_files(path, proto)
    return OnnxGraph(path, proto)


def _refuse_operators(name: str, proto: Any) -> None:
    own = {(function.domain, function.name) for function in proto.functions}
    for node in _nodes(proto):
        if node.domain not in DOMAINS and (node.domain, node.op_type) not in own:
            raise InputError(
                f"{name} uses the operator {node.op_type} of {node.domain!r} (node {node.name or 'without a name'}), "
                "which needs a custom library. nearid never loads one. Export the model with standard operators."
            )


def external_files(path: Path, proto: Any) -> set[Path]:
    """Files that hold weights of a model; refuses those outside of its folder, and those that are too short."""
    folder = os.path.realpath(path.parent)
    sizes: dict[Path, int] = {}
    for tensor in _tensors(proto):
        if tensor.data_location != tensor.EXTERNAL:
            continue
        external = {entry.key: entry.value for entry in tensor.external_data}
        location = external.get("location", "")
        place = Path(os.path.realpath(os.path.join(folder, location)))
        if not location or ADDRESS in location or os.path.isabs(location) or Path(folder) not in place.parents:
            raise InputError(
                f"{path.name} stores the weights {tensor.name} in {location!r}, outside of its own folder, where "
                f"nearid does not read. Export the model again with this file beside it."
            )
        if not place.is_file():
            raise InputError(f"{path.name} keeps the weights {tensor.name} in {location!r}, which is not there.")
        sizes.setdefault(place, place.stat().st_size)
        try:
            offset, length = (int(external.get(key, 0)) for key in ("offset", "length"))
        except ValueError:
            offset = length = -1
        end = offset + length
        if min(offset, length) < 0 or end > sizes[place]:
            raise InputError(
                f"{path.name} keeps the weights {tensor.name} in {location!r}, bytes {offset:,} to {end:,}, but that "
                f"file has {readable(sizes[place])}. Copy it again."
            )
    check_memory(path.name, sum(sizes.values()), "Run it on a machine with more.")
    return set(sizes)


def _nodes(proto: Any) -> Iterator[Any]:
    """All nodes of a model, including those inside branches, loops and functions."""
    for nodes in (proto.graph.node, *(function.node for function in proto.functions)):
        for node in nodes:
            yield node
            yield from _nodes_in(node)


def _nodes_in(node: Any) -> Iterator[Any]:
    for graph in _graphs(node):
        for inner in graph.node:
            yield inner
            yield from _nodes_in(inner)


def _graphs(node: Any) -> Iterator[Any]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _tensors(proto: Any) -> Iterator[Any]:
    """Everything with numbers in a model: weights, and attributes of nodes."""
    nodes = list(_nodes(proto))
    for graph in (proto.graph, *(graph for node in nodes for graph in _graphs(node))):
        yield from graph.initializer
        for sparse in graph.sparse_initializer:
            yield from (sparse.values, sparse.indices)
    for attribute in (attribute for node in nodes for attribute in node.attribute):
        if attribute.HasField("t"):
            yield attribute.t
        yield from attribute.tensors
        if attribute.HasField("sparse_tensor"):
            yield from (attribute.sparse_tensor.values, attribute.sparse_tensor.indices)


def _declared(value: Any) -> Declared:
    from onnx.helper import tensor_dtype_to_np_dtype

    kind = value.type.tensor_type
    if not kind.elem_type:
        raise InputError(f"The input {value.name} of the model is a sequence or map, but nearid supports only tensors.")
    dtype = tensor_dtype_to_np_dtype(kind.elem_type)
    if not kind.HasField("shape"):
        return Declared(str(dtype), None)
    return Declared(str(dtype), tuple(d.dim_value if d.dim_value > 0 else None for d in kind.shape.dim))
