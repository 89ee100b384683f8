"""Run batches through the model, write rows to disk at the same time, and record the provenance."""

import platform
import sys
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from nearid import __version__
from nearid.arrays import first_nonfinite, open_rows
from nearid.arrays.formats.layers import FORMAT, tell_inputs
from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.base.progress import Progress
from nearid.questions.extract.batches import MASK, Batch, DataHash, Source, peeked
from nearid.questions.extract.forward import Forward
from nearid.questions.extract.network import Network
from nearid.questions.extract.onnx_network import OnnxNetwork
from nearid.questions.extract.pooling import token_id_type, token_ids, word_ids
from nearid.questions.extract.result import Extraction
from nearid.questions.extract.store import AGAIN, Store

# Number of batches that may wait for the disk while the next one is computed.
AHEAD = 2
# Largest number of inputs for a first pass that shows the outputs of the layers, before anything is written.
PROBE = 3
# Pools with several rows per input.
SEVERAL = ("tokens", "words")

Blocks = dict[str, np.ndarray]


class Run:
    """An extraction that is ready to run.

    Parameters
    ----------
    options : dict
        Options for the provenance.
    """

    def __init__(self, forward: Forward, source: Source, options: dict[str, Any], progress: Progress) -> None:
        self._source, self._options = source, options
        # Whether an input gives several rows.
        self._several, self._dtype = options["pool"] in SEVERAL, np.dtype(options["dtype"])
        size = options["batch_size"]
        first, self._batches = peeked(source.batches(size))
        main = forward.main_of(first.arrays)
        if main is not None:
            x = first.arrays[main]
            forward.preprocess.check(main or source.name, tuple(x.shape), str(x.dtype).removeprefix("torch."))
        self._arrays, self._masked = source.described(first), MASK in first.arrays
        # A different number than in the batches: a layer with another first axis cannot fit both.
        count = PROBE if first.n > PROBE else max(first.n - 1, 1)
        probe = first.first(count)
        self._forward, self._probed = forward.with_layout(probe)
        self._probed_at = probe.places
        forward.taps.refuse_silent(self._probed)
        self._widths = {layer: int(rows.shape[1]) for layer, rows in self._probed.items()}
        self._began, self._computed = time.monotonic(), 0
        self._tick = progress("batches", source.count(size))
        self._hash = DataHash(source.sha256)

    def into_memory(self) -> Extraction:
        """Rows in memory."""
        held: list[Blocks] = []
        ids: list[np.ndarray] = []
        beside: dict[str, list[np.ndarray]] = {"blocks": [], "labels": []}
        places: list[np.ndarray] = []
        inputs = 0
        for batch in self._batches:
            blocks, names, columns = self._rows(batch)
            self._check(batch, blocks)
            held.append(blocks)
            ids.append(names)
            for name, values in columns.items():
                beside[name].append(values)
            places += [] if batch.places is None else [batch.places]
            self._hash.update(batch)
            inputs += batch.n
            self._done(batch)
        order = np.argsort(np.concatenate(places)) if places else slice(None)
        every = np.concatenate(ids)[order]
        together, labels = (np.concatenate(parts)[order] if parts else None for parts in beside.values())
        rows = {
            layer: open_rows(
                np.concatenate([blocks.pop(layer) for blocks in held])[order], ids=every, name=layer, blocks=together
            )
            for layer in self._widths
        }
        digest = self._hash.hexdigest()
        layers = {layer: {"shape": list(r.shape), "dtype": self._dtype.name} for layer, r in rows.items()}
        manifest = self._manifest(self._forward.network.about(), digest, inputs)
        for each in rows.values():
            tell_inputs(each, manifest)
        made = {**manifest, "rows": len(every), "layers": layers}
        return Extraction(None, made, rows, self._source.alerts, labels)

    def into_folder(self, out: Path, form: str, *, restart: bool) -> Extraction:
        """Rows in a folder."""
        source = self._source
        kinds = {"blocks": source.id_type if self._several else None, "labels": source.label_type}
        beside = {name: kind for name, kind in kinds.items() if kind is not None}
        id_type = token_id_type(source.id_type) if self._several else source.id_type
        model = self._forward.network.about()
        identity = {
            **self._options,
            "format": form,
            "layers": self._widths,
            "model": model["sha256"],
            "data": [source.rows, self._arrays],
            **source.identity,
            "versions": _versions(self._forward.network),
            # A partial folder of an older version has no blocks to continue.
            **dict.fromkeys(beside, True),
        }
        about = {"nearid": __version__, "model": model["sha256"], "pool": self._options["pool"]}
        layers = {layer: (width, self._dtype) for layer, width in self._widths.items()}
        store = Store(out, form, layers, id_type, beside, identity, about, source.total)
        with store.open(restart=restart):
            store.check_space(source.total if source.total or self._several else source.rows)
            before = store.inputs
            probed = {layer: rows.numpy(force=True) for layer, rows in self._probed.items()}
            store.refuse_others(probed, self._probed_at)
            if store.noted["complete"]:
                # Only the last step is missing, but the data may have changed.
                if next(self._remaining(store, store.inputs), None) is not None:
                    raise _changed(store, "there are more inputs than before")
            else:
                self._fill(store)
                if store.rows < 2:
                    raise InputError(f"The data gave {store.rows} row, but at least 2 are needed.")
                store.keep(self._hash.with_ids(), complete=True)
            digest = self._hash.hexdigest()
            store.finish(self._manifest(model, digest, store.inputs), {"data": digest})
        extraction = Extraction.open(out)
        extraction.alerts = source.alerts
        if before:
            went_on = f"This run continued an earlier one, which had written the rows of the first {before:,} inputs."
            extraction.alerts += (Alert("resumed", went_on),)
        return extraction

    def _done(self, batch: Batch) -> None:
        """Report that a batch is done, with the number of inputs per second."""
        self._computed += batch.n
        rate = self._computed / max(time.monotonic() - self._began, 1e-9)
        self._tick(f"{rate:,.0f} inputs/s" if rate >= 10 else f"{rate:.2g} inputs/s")

    def _fill(self, store: Store) -> None:
        done = store.inputs
        try:
            with ThreadPoolExecutor(1, thread_name_prefix="nearid-extract") as writer:
                pending: deque[Future[None]] = deque()
                for batch in self._remaining(store, done):
                    pending.append(writer.submit(self._write, store, batch, *self._rows(batch)))
                    if len(pending) > AHEAD:
                        pending.popleft().result()
                    self._done(batch)
                for each in pending:
                    each.result()
        except InputError as error:
            # Say that rows are kept, unless the error is about these rows.
            if not store.kept or str(store.folder) in str(error):
                raise
            left = f"The rows of {store.kept} inputs are kept in {store.folder}"
            raise InputError(f"{error} {left}. Correct this and run the same call again to continue.") from error
        except BaseException:
            # An interruption: keep the rows that are written.
            if store.inputs:
                store.keep(self._hash.with_ids())
            raise

    def _remaining(self, store: Store, done: int) -> Iterator[Batch]:
        """Batches that are not written yet; the others are hashed to check that they are the same."""
        seen = 0
        for batch in self._batches:
            if seen >= done:
                yield batch
                continue
            self._hash.update(batch)
            seen += batch.n
            self._tick()
            if seen >= done and (seen > done or self._hash.with_ids() != store.noted["digest"]):
                break
        else:
            if seen >= done:
                return
        raise _changed(store, f"the first {done} inputs, or their ids, have changed")

    def _write(self, store: Store, batch: Batch, blocks: Blocks, ids: np.ndarray, beside: Blocks) -> None:
        if batch.start != store.inputs:
            return  # the previous batch could not be written, which is reported; write nothing after it
        self._check(batch, blocks)
        store.put(blocks, ids, batch.n, beside, batch.places)
        self._hash.update(batch)
        if store.due():
            store.keep(self._hash.with_ids())

    def _rows(self, batch: Batch) -> tuple[Blocks, np.ndarray, Blocks]:
        """Rows of every layer in memory, in the precision of the output; their ids; their blocks and labels."""
        pooled, mask = self._forward(batch)
        widths = {layer: int(rows.shape[1]) for layer, rows in pooled.items()}
        if widths != self._widths:
            layer = next(k for k in {**self._widths, **widths} if widths.get(k) != self._widths.get(k))
            raise InputError(
                f"The layer {layer} gave {widths.get(layer, 'no')} columns for the inputs from {batch.start} on, but "
                f"{self._widths.get(layer, 'none')} for the first ones. Give inputs of one shape, or pool them to one."
            )
        with np.errstate(over="ignore"):
            blocks = {layer: rows.numpy(force=True).astype(self._dtype, copy=False) for layer, rows in pooled.items()}
        labels = {} if batch.labels is None else {"labels": batch.labels}
        if not self._several:
            return blocks, batch.ids, labels
        if batch.words is not None:
            ids, texts = word_ids(batch.ids, batch.words)
            return blocks, ids, {"blocks": texts}
        counts = {layer: len(block) for layer, block in blocks.items()}
        if mask is None:
            real = np.ones((batch.n, next(iter(counts.values())) // batch.n), bool)
        else:
            real = mask.numpy(force=True)
        ids = token_ids(batch.ids, real)
        odd = next((layer for layer, count in counts.items() if count != len(ids)), None)
        if odd is not None:
            raise InputError(
                f"The layer {odd} gives {counts[odd]} tokens, but the first layer or the mask has {len(ids)}. Choose "
                "layers with the same tokens."
            )
        each = real.sum(axis=1)
        return blocks, ids, {name: np.repeat(values, each) for name, values in {"blocks": batch.ids, **labels}.items()}

    def _check(self, batch: Batch, blocks: Blocks) -> None:
        """Refuse values that are not finite, by layer and input."""
        if self._options["keep_nonfinite"]:
            return
        for layer, block in blocks.items():
            bad = first_nonfinite(block, 0)
            if bad is not None:
                row, column, value = bad
                part = f"{self._options['pool'][:-1]} row {row} of the batch"
                at = part if self._several else self._named(batch, row)
                raise InputError(
                    f"The layer {layer} gave {value} for {at}, column {column}, in a batch that begins with "
                    f"{self._named(batch, 0)}. Look at that input and at the weights; larger numbers than "
                    f"{self._dtype} holds need another dtype. Such values are written with keep_nonfinite=True "
                    "(--keep-nonfinite)."
                )

    def _named(self, batch: Batch, row: int) -> str:
        """Name of an input in messages; its number is not useful if batches have their own order."""
        named = f"id {batch.ids[row].item()!r}"
        return f"the input with {named}" if batch.spans is not None else f"input {batch.start + row} ({named})"

    def _manifest(self, model: dict[str, Any], digest: str, inputs: int) -> dict[str, Any]:
        data = {"name": self._source.name, "sha256": digest, "inputs": inputs, "arrays": self._arrays}
        return {
            "format": FORMAT,
            "model": model,
            "data": {**data, "masked": self._masked},
            "options": self._options,
            "versions": _versions(self._forward.network),
        }


def _changed(store: Store, how: str) -> InputError:
    return InputError(f"{store.folder} belongs to other data: {how}. {AGAIN}")


def _versions(network: Network | OnnxNetwork) -> dict[str, str]:
    versions = {"nearid": __version__, "python": platform.python_version(), "numpy": np.__version__}
    return {**versions, **{name: str(sys.modules[name].__version__) for name in network.libraries}}
