"""Extractions of two models from the same inputs, stored in the user's cache by a hash of their origin."""

from __future__ import annotations

import inspect
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nearid.arrays import Rows
from nearid.arrays.formats.layers import is_extraction
from nearid.arrays.names import matches, patterns_of, split_part
from nearid.base.alerts import Alert
from nearid.base.cache import Cache, Unkeyed
from nearid.base.errors import InputError
from nearid.base.files import local_path, write_text
from nearid.base.options import check_arguments
from nearid.base.progress import Progress
from nearid.questions.extract.result import Extraction, Head
from nearid.questions.extract.run import extract, first_look
from nearid.questions.models.keys import data_key, key_of, model_key, opened_network, options_key

# In an entry of the cache: the folder of the layers, their alerts, and the head.
LAYERS, SAID, HEAD = "layers", "alerts.json", "head.npz"
# Suffix of the name of a layer that is only the input of the head.
GIVEN = "input"


@dataclass(frozen=True)
class Kept:
    """The layers of a model.

    Attributes
    ----------
    layers : Extraction
        Layers, without those that are only the input of the head.
    head : Head or None
    features : Rows or None
        Input of the head.
    key : str or None
        Key of the entry in the cache.
    there : bool
        Whether they were in the cache before.
    """

    layers: Extraction
    head: Head | None = None
    features: Rows | None = None
    key: str | None = None
    there: bool = False


def refuse_early(model: Any, data: Any, options: Mapping[str, Any]) -> None:
    """Refuse known errors in a model, the data or the layers, before anything slow is imported or run.

    `extract` refuses the same, but it would check the second model only after the first has run.
    """
    check_arguments(extract, model, data, **options)
    bound = inspect.signature(extract).bind(model, data, **options)
    bound.apply_defaults()
    first_look(**bound.arguments)


@contextmanager
def extracted(
    models: Sequence[Any],
    data: Any,
    options: Sequence[Mapping[str, Any]],
    cache: Cache | None,
    progress: Progress,
    *,
    heads: bool,
) -> Iterator[list[Kept]]:
    """Yield the layers of each model, from the cache if possible; the cache keeps them inside the `with` block."""
    each = enumerate(zip(models, options, strict=True), start=1)
    works = [_Work(model, data, own, cache, progress, number, heads) for number, (model, own) in each]
    while True:
        there = [work.done() for work in works]
        with ExitStack() as stack:
            folders = [stack.enter_context(work.held()) for work in works]
            # Entries that another process has removed meanwhile are extracted again.
            if all(folder is not None or work.key is None for folder, work in zip(folders, works, strict=True)):
                yield [
                    work.opened(folder, there=before)
                    for work, folder, before in zip(works, folders, there, strict=True)
                ]
                break
    if cache is not None:
        cache.shrink()


class _Work:
    """The extraction of one model."""

    def __init__(
        self,
        model: Any,
        data: Any,
        options: Mapping[str, Any],
        cache: Cache | None,
        progress: Progress,
        number: int,
        heads: bool,
    ) -> None:
        self._model, self._data, self._options, self._cache = model, data, dict(options), cache
        self._progress: Progress = lambda stage, steps: progress(f"model {number}: {stage}", steps)
        self._memory: Extraction | None = None
        self._head: Head | None = None
        self._heads = heads
        self.key: str | None = None
        if cache is not None:
            try:
                self._model, identity = model_key(model, self._options)
                self.key = key_of(identity, data_key(data), options_key(self._options), heads)
            except Unkeyed:
                pass  # no key, so it cannot be cached

    def done(self) -> bool:
        """Make the extraction unless it is in the cache; return whether it was."""
        if self._cache is not None and self.key is not None:
            return self._cache.fill(self.key, self._make)
        self._head = self._found_head()
        self._memory = extract(self._model, self._data, **self._options, progress=self._progress)
        return False

    def _found_head(self) -> Head | None:
        """The head of the model, if heads are compared; its input is then extracted too."""
        if not self._heads:
            return None
        from nearid.questions.extract.heads import folder_head, head_of
        from nearid.questions.extract.network import Network

        if isinstance(self._model, str | os.PathLike) and local_path(self._model).is_dir():
            return folder_head(local_path(self._model))
        network = opened_network(self._model, self._options)
        if not isinstance(network, Network):
            return None
        head = head_of(network, self._options.get("pool", "mean"), usual="layers" not in self._options)
        if head is not None:
            self._model = replace(network, also=(head.layer,))
        return head

    @contextmanager
    def held(self) -> Iterator[Path | None]:
        if self._cache is None or self.key is None:
            yield None
            return
        with self._cache.hold(self.key) as folder:
            yield folder

    def opened(self, folder: Path | None, *, there: bool) -> Kept:
        if folder is None:
            assert self._memory is not None
            return self._kept(self._memory, self._head)
        layers = Extraction.open(folder / LAYERS)
        stored = json.loads((folder / SAID).read_text(encoding="utf-8"))
        layers.alerts = tuple(Alert(code, message) for code, message in stored)
        head = Head.load(folder / HEAD) if (folder / HEAD).exists() else None
        return self._kept(layers, head, there=there)

    def _kept(self, layers: Extraction, head: Head | None, *, there: bool = False) -> Kept:
        if head is None or head.layer not in layers:
            return Kept(layers, key=self.key, there=there)
        features = layers[head.layer]
        if head.layer.endswith(f":{GIVEN}") and not self._is_asked(head.layer):
            again = f"{head.layer}#"  # where the head is called more than once
            others = {n: rows for n, rows in layers.items() if n != head.layer and not n.startswith(again)}
            layers = Extraction(layers.folder, layers.provenance, others, tuple(layers.alerts), layers.labels)
        return Kept(layers, head, features, self.key, there)

    def _is_asked(self, layer: str) -> bool:
        """Whether the input of the head is one of the chosen layers."""
        name = layer.removesuffix(f":{GIVEN}")
        parts = (split_part(pattern, [name]) for pattern in patterns_of(self._options.get("layers")) or ())
        return any(part == GIVEN and matches(pattern, name) for pattern, part in parts)

    def _make(self, folder: Path) -> None:
        out = folder / LAYERS
        if is_extraction(out) and not (folder / SAID).exists():
            # A run was killed between the two writes: its alerts are lost.
            shutil.rmtree(out)
        if not is_extraction(out):
            head = self._found_head()
            made = self._extracted(out)
            if head is not None and head.layer in made:
                head.save(folder / HEAD)
            write_text(folder / SAID, json.dumps([[a.code, a.message] for a in made.alerts if a.code != "resumed"]))

    def _extracted(self, out: Path) -> Extraction:
        call = {"out": out, **self._options, "progress": self._progress}
        try:
            return extract(self._model, self._data, **call)
        except InputError as error:
            # A partial extraction that cannot be continued. It is private to the cache, so start again.
            if "restart=True" not in str(error):
                raise
        return extract(self._model, self._data, **call, restart=True)
