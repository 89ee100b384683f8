"""An ONNX model on the CPU: named inputs in batches of any or fixed size, states between steps, and its layers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nearid.arrays.names import few
from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.questions.extract.batches import MASK
from nearid.questions.extract.onnx_axes import ROUNDED, grown_axis, moved_axis
from nearid.questions.extract.onnx_graph import Layer, OnnxGraph
from nearid.questions.extract.pooling import Pooler, pooled
from nearid.questions.extract.words import WordTokens

# Types of layers by onnxruntime's names: patterns match only floats, exact names also whole numbers.
FLOATS = ("tensor(float)", "tensor(double)", "tensor(float16)")
WHOLE_NUMBERS = tuple(f"tensor({sign}int{bits})" for sign in ("", "u") for bits in (8, 16, 32, 64))
# Where onnxruntime looks for the weights of a model that it is given as bytes.
FOLDER = "session.model_external_initializers_file_folder_path"

Arrays = dict[str, np.ndarray]


class OnnxNetwork:
    """A model that is ready to run once its layers are chosen.

    Parameters
    ----------
    carry : mapping of str to str, optional
        Inputs that receive, at each step of a sequence, an output of the previous step.
    """

    pretrained, named, loaded = False, True, True
    libraries = ("onnxruntime",)

    def __init__(self, graph: OnnxGraph, carry: Mapping[str, str] | None = None) -> None:
        self.graph, self.name, self.alerts = graph, graph.name, tuple[Alert, ...]()
        self._carry = graph.carried(carry)
        self._main = next(name for name in graph.inputs if name not in self._carry)
        axes = graph.inputs[self._main].axes
        # Inputs per run; any number if the graph does not fix the batch axis.
        self._size: int | None = axes[0] if axes else None
        # Batch axis of each extracted tensor; None if it has none.
        self._axes: dict[str, int | None] = {}
        # Whether the graph has no batch axis, so that each input runs separately.
        self._alone = False
        self._session: Any = None
        self._fetched: list[str] = []

    @property
    def dtype(self) -> torch.dtype:
        """Precision of the first input, or float32 if it is not a float."""
        known = {"float16": torch.float16, "float64": torch.float64}
        return known.get(self.graph.inputs[self._main].dtype, torch.float32)

    @property
    def whole_numbers(self) -> bool:
        """Whether the first input takes whole numbers, such as tokens or bytes of images, without scaling."""
        return self.graph.inputs[self._main].dtype.removeprefix("u").startswith("int")

    @property
    def takes_mask(self) -> bool:
        """Whether the graph takes a mask of the padding."""
        return MASK in self.graph.inputs

    @property
    def steps(self) -> bool:
        """Whether the second axis has steps that run one by one."""
        return bool(self._carry)

    def place(self, device: Any = None) -> torch.device:
        """The CPU; other devices are refused."""
        if str(device or "auto") not in ("auto", "cpu"):
            raise InputError(f"nearid runs ONNX models only on the CPU, not on {device}. Leave the device out.")
        return torch.device("cpu")

    def main_input(self) -> str:
        """Name of the input that a single array is for."""
        return self._main

    @contextmanager
    def evaluating(self, device: torch.device) -> Iterator[None]:
        """Nothing has to be prepared: weights do not change."""
        yield

    def about(self) -> dict[str, Any]:
        """Name, origin, size and hash of the model."""
        opsets = ", ".join(f"{each.domain or 'ai.onnx'} {each.version}" for each in self.graph.proto.opset_import)
        return {
            "name": self.name,
            "class": f"ONNX ({opsets})",
            "parameters": self.graph.parameters,
            "sha256": self.graph.fingerprint(),
        }

    def taps(self, patterns: Sequence[str] | None, pool: str | Pooler) -> OnnxTaps:
        """The chosen layers; they become outputs of the graph, in memory."""
        layers = self.graph.layers(patterns)
        self._session = _session(self.graph, [*(layer.tensor for layer in layers), *self._carry.values()])
        types = {output.name: output.type for output in self._session.get_outputs()}
        for layer in layers:
            if layer.wanted and types[layer.tensor] not in FLOATS + WHOLE_NUMBERS:
                raise InputError(f"The layer {layer.name} gives {types[layer.tensor]}, but numbers are expected.")
        layers = [layer for layer in layers if layer.wanted or types[layer.tensor] in FLOATS]
        self._fetched = list(dict.fromkeys([*(layer.tensor for layer in layers), *self._carry.values()]))
        return OnnxTaps(self, layers, pool)

    def call(self, inputs: Tensor | dict[str, Tensor]) -> dict[str, Tensor]:
        """Tensors of one forward pass, inputs first, and then steps where there are some."""
        arrays = self._arrays(inputs if isinstance(inputs, dict) else {self._main: inputs})
        if not self._axes:
            self._learn(arrays)
        n = len(arrays[self._main])
        size = self._size or n
        parts = [self._part({k: a[at : at + size] for k, a in arrays.items()}, size) for at in range(0, n, size)]
        # Tensors without a batch axis are left out.
        names = [name for name in self._fetched if self._axes[name] is not None]
        return {name: torch.from_numpy(np.concatenate([part[name] for part in parts])[:n]) for name in names}

    def _arrays(self, inputs: dict[str, Tensor]) -> Arrays:
        """Inputs by name in the types that the graph declares."""
        declared = self.graph.inputs
        given = {name: x for name, x in inputs.items() if name in declared or name != MASK}
        takes = f"It takes {', '.join(f'{name}: {each}' for name, each in declared.items())}."
        strange = sorted(given.keys() - declared.keys())
        missing = sorted(declared.keys() - given.keys() - self._carry.keys())
        if strange:
            raise InputError(f"{self.name} has no input named {few(strange)}. {takes}")
        if missing:
            raise InputError(
                f"{self.name} also takes {few(missing)}: give a dict (or an .npz file) with one entry for each input "
                f"of the model, by name, with one value per example. {takes} For a state that is passed from step to "
                f"step: carry={{'state_in': 'state_out'}} (--carry state_in=state_out)."
            )
        return {name: self._typed(name, x.numpy(force=True)) for name, x in given.items()}

    def _typed(self, name: str, x: np.ndarray) -> np.ndarray:
        dtype = self.graph.inputs[name].dtype
        if dtype == "object":
            raise InputError(
                f"The input {name} of {self.name} takes text, which nearid does not support. Export the model without "
                f"this input."
            )
        if x.dtype.kind == "f" and np.dtype(dtype).kind in "iu":
            raise InputError(f"The input {name} of {self.name} takes {dtype}, but the data contains fractions.")
        return x.astype(dtype, copy=False)

    def _learn(self, arrays: Arrays) -> None:
        """Find the batch axis of every tensor, and check that inputs do not influence each other."""
        axes = self.graph.inputs[self._main].axes
        x = arrays[self._main]
        if axes is not None and x.ndim == len(axes) + 1 and not self.steps:
            self._alone, self._size, self._axes = True, 1, dict.fromkeys(self._fetched, 0)
            return
        last = {name: self._step(name, a, 0)[-1:] for name, a in arrays.items()}
        if self._size is None:
            try:
                two, three = (self._raw({k: np.repeat(a, n, 0) for k, a in last.items()}) for n in (2, 3))
            except InputError:
                # Some graphs do not fix the axis, but accept only one number of inputs.
                self._raw(last)
                self._size = 1
            else:
                self._axes = {name: grown_axis(two[name].shape, three[name].shape) for name in self._fetched}
                self._compare({name: self._step(name, a, 0) for name, a in arrays.items()}, two)
                return
        self._axes = self._moving({name: self._step(name, a, 0) for name, a in arrays.items()}, self._size)

    def _moving(self, arrays: Arrays, size: int) -> dict[str, int | None]:
        """For each tensor, the axis along which a change follows the one input that differs from all others.

        Sizes alone are not enough: there may be as many directions or steps as inputs.
        """
        x = arrays[self._main]
        # The input that is least similar to the last one.
        other = int((x != x[-1:]).reshape(len(x), -1).sum(1).argmax())
        equal = {name: np.repeat(a[-1:], size, 0) for name, a in arrays.items()}
        runs = [self._raw(equal)]
        for place in (0, size - 1) if size > 1 else ():
            given = {name: a.copy() for name, a in equal.items()}
            for name, a in given.items():
                # One value for all inputs stays.
                if a.ndim == len(self.graph.inputs[name].axes or a.shape):
                    a[place] = arrays[name][other]
            if (x[other] == x[-1]).all():
                given[self._main][place] = 0 if x[-1].any() else 1
            runs.append(self._raw(given))
        layouts = self.graph.recurrent
        return {
            name: moved_axis(size, *(run[name] for run in runs), layout=layouts.get(name)) for name in self._fetched
        }

    def _compare(self, arrays: Arrays, alone: Arrays) -> None:
        if len(arrays[self._main]) < 2:
            return
        together, alone = self._first(self._raw(arrays)), self._first(alone)
        for name, rows in together.items():
            off = np.abs(rows[-1].astype(float) - alone[name][0]).max(initial=0.0)
            largest = np.abs(rows.astype(float)).max(initial=0.0)
            if self._axes[name] is not None and off > ROUNDED * largest:
                sentence = (
                    f"{self.name} gives different numbers for an input in a batch and alone. In {name} they differ by "
                    f"{off / largest:.1%} of the largest number. Inputs influence one another, for example by "
                    "quantisation that depends on the batch. batch_size=1 (--batch-size 1) keeps them apart. If the "
                    "first axis is time, add an axis for the inputs: (inputs, time, ...)."
                )
                self.alerts = (Alert("inputs_interact", sentence),)
                return

    def _part(self, arrays: Arrays, size: int) -> Arrays:
        """Tensors for at most `size` inputs, padded if the graph takes exactly this number."""
        rows = len(arrays[self._main])
        if self._size is not None and rows < size:
            arrays = {name: np.concatenate([a, np.repeat(a[-1:], size - rows, 0)]) for name, a in arrays.items()}
        if not self.steps:
            return self._first(self._raw(arrays))
        axes, x = self.graph.inputs[self._main].axes, arrays[self._main]
        if axes is not None and x.ndim != len(axes) + 1:
            raise InputError(
                f"With carry, {self._main} of {self.name} has the axes (inputs, steps, ...); shape {x.shape} has "
                f"{x.ndim} axes instead of {len(axes) + 1}."
            )
        each: dict[str, list[np.ndarray]] = {name: [] for name in self._fetched}
        for at in range(x.shape[1]):
            given = self._first(self._raw({name: self._step(name, a, at) for name, a in arrays.items()}))
            for name, value in given.items():
                each[name].append(value)
            arrays = {**arrays, **{taking: given[giving] for taking, giving in self._carry.items()}}
        return {name: np.stack(values, 1) for name, values in each.items()}

    def _step(self, name: str, x: np.ndarray, at: int) -> np.ndarray:
        """An input at one step, if it has an axis of steps."""
        axes = self.graph.inputs[name].axes
        if not self.steps or name in self._carry or not axes or x.ndim != len(axes) + 1:
            return x
        return x[:, at]

    def _raw(self, arrays: Arrays) -> Arrays:
        """Raw tensors of the graph; states that are not given start at zero."""
        n = len(arrays[self._main])
        for name in self._carry.keys() - arrays.keys():
            arrays = {**arrays, name: self._zeros(name, n)}
        feeds = {name: self._feed(name, a) for name, a in arrays.items()}
        try:
            return dict(zip(self._fetched, self._session.run(self._fetched, feeds), strict=True))
        except Exception as error:  # what onnxruntime raises is not documented
            shapes = ", ".join(f"{name} {a.shape}" for name, a in feeds.items())
            raise InputError(f"{self.name} cannot take {shapes}: {_why(error)}.") from None

    def _first(self, raw: Arrays) -> Arrays:
        """Tensors with the inputs along the first axis."""
        if self._alone:
            # Convolutions always have a batch axis.
            has_axis = self.graph.maps
            return {name: x if name in has_axis and x.shape[0] == 1 else x[None] for name, x in raw.items()}
        return {name: np.ascontiguousarray(np.moveaxis(x, self._axes[name] or 0, 0)) for name, x in raw.items()}

    def _zeros(self, name: str, n: int) -> np.ndarray:
        declared = self.graph.inputs[name]
        axis = self._axis_of(name)
        others = [size for at, size in enumerate(declared.axes or ()) if at != axis and size is not None]
        if axis is None or len(others) < len(declared.axes or ()) - 1:
            raise InputError(
                f"The state {name} of {self.name} is {declared}, so nearid cannot infer its first value. Give the "
                f"first value as an entry {name!r} of the data. A model without a batch axis takes whole sequences, "
                f"without carry."
            )
        return np.zeros([n, *others], declared.dtype)

    def _feed(self, name: str, x: np.ndarray) -> np.ndarray:
        """An input in the form of the graph: with its batch axis in the right place, or one value for all."""
        axes = self.graph.inputs[name].axes
        if axes is None or x.ndim == len(axes):
            return np.ascontiguousarray(np.moveaxis(x, 0, self._axis_of(name) or 0))
        if x.ndim != len(axes) + 1:
            raise InputError(
                f"The input {name} of {self.name} is {self.graph.inputs[name]}, but the data has shape {x.shape}."
            )
        if not (x == x[:1]).all():
            raise InputError(
                f"{self.name} takes one value of {name} for all inputs of a batch, but it differs between them. Give "
                "batch_size=1 (--batch-size 1), or one value."
            )
        return np.ascontiguousarray(x[0])

    def _axis_of(self, name: str) -> int | None:
        """The batch axis of an input: the first axis of any size, or of the batch size."""
        axes = self.graph.inputs[name].axes or ()
        # A state has the same axes as its output.
        given = self._axes.get(self._carry.get(name, ""))
        if given is not None and given < len(axes) and axes[given] in (None, self._size):
            return given
        return next((at for at, size in enumerate(axes) if size in (None, self._size)), None)


class OnnxTaps:
    """The chosen layers of an ONNX model, as `Taps` of a module."""

    def __init__(self, network: OnnxNetwork, layers: Sequence[Layer], pool: str | Pooler) -> None:
        self._network, self._layers, self._pool = network, layers, pool

    def __enter__(self) -> OnnxTaps:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def run(self, call: Any, n: int, mask: Tensor | None, words: WordTokens | None = None) -> dict[str, Tensor]:
        """Pooled outputs by layer, in the order in which the layers are computed, of one forward pass of n inputs."""
        tensors = call()
        present = [layer for layer in self._layers if layer.tensor in tensors]
        return {layer.name: self._rows(layer, tensors[layer.tensor], n, mask, words) for layer in present}

    def _rows(self, layer: Layer, x: Tensor, n: int, mask: Tensor | None, words: WordTokens | None) -> Tensor:
        graph = self._network.graph
        steps = x.shape[1] if self._network.steps else None
        if steps is not None:
            # Each step of each input is pooled to a row; these rows are the tokens of the input.
            x = x.flatten(0, 1)
        if layer.tensor in graph.recurrent and x.ndim > graph.recurrent[layer.tensor]:
            x = x.flatten(graph.recurrent[layer.tensor])
        if layer.part is not None:
            if x.ndim < 2 or layer.part >= x.shape[1]:
                raise InputError(
                    f"The layer {layer.tensor} gives shape {tuple(x.shape)}, which has no part {layer.part}."
                )
            x = x[:, layer.part]
        maps = layer.tensor in graph.maps
        if steps is None:
            return pooled(layer.name, x, n, self._pool, mask, maps=maps, words=words)
        inside = "flatten" if self._pool == "flatten" else "mean"
        rows = pooled(layer.name, x, n * steps, inside, None, maps=maps).unflatten(0, (n, steps))
        return pooled(layer.name, rows, n, self._pool, mask)

    def refuse_silent(self, pooled: Mapping[str, Tensor]) -> None:
        """Refuse named layers that do not depend on the inputs, and the case of no layer at all."""
        for layer in self._layers:
            if layer.wanted and layer.name not in pooled:
                raise InputError(f"The layer {layer.name} has no batch axis. Leave it out, or choose a later one.")
        if not pooled:
            raise InputError(f"None of the chosen layers of {self._network.name} gives a row for each input.")


def _session(graph: OnnxGraph, names: Sequence[str]) -> Any:
    """A session of onnxruntime that gives the named tensors; no library of operators is ever loaded."""
    import onnx

    try:
        import onnxruntime
    except ModuleNotFoundError:
        raise InputError(f"{graph.name} runs with onnxruntime: pip install 'nearid[onnx]'.") from None
    proto = onnx.ModelProto()
    proto.CopyFrom(graph.proto)
    there = {output.name for output in proto.graph.output}
    proto.graph.output.extend(onnx.ValueInfoProto(name=name) for name in dict.fromkeys(names) if name not in there)
    options = onnxruntime.SessionOptions()
    # As many threads as torch. Sums are not split among threads, so the number of threads does not change the result.
    options.intra_op_num_threads, options.inter_op_num_threads = torch.get_num_threads(), 1
    options.use_deterministic_compute = True
    # Errors are raised; other messages are not for the user.
    options.log_severity_level = 4
    options.add_session_config_entry(FOLDER, str(graph.path.parent.resolve()))
    try:
        return onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # what onnxruntime raises is not documented
        version = onnxruntime.__version__
        raise InputError(f"{graph.name} cannot be run by onnxruntime {version}: {_why(error)}.") from None


def _why(error: Exception) -> str:
    """The message of onnxruntime, without the position in its own code."""
    message = " ".join(str(error).split()).rpartition("Status Message: ")[2]
    message = re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : |\S+\.(h|cc):\d+ |(\S+ )?onnxruntime::[^)]*\) ", "", message)
    return message[:300].rstrip(" .")
