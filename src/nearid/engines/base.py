"""The interface of engines, which run passes over row blocks and independent tasks, and the tree that merges parts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Self, TypeVar

A = TypeVar("A")
L = TypeVar("L")
T = TypeVar("T")

# Number of children of a node of the tree.
FAN_IN = 8


@dataclass(frozen=True)
class Failure:
    """Error of a task that gave no result.

    Attributes
    ----------
    error : str
        The error message in one line.
    trace : str
        The Python traceback. Empty if the process ended without one.
    """

    error: str
    trace: str = ""


class Engine(ABC):
    """Base class of engines. An engine runs one task on many items and merges the results, or keeps them separate.

    Examples
    --------
    >>> from nearid.engines.local import Local
    >>> Local().reduce(lambda item: [item**2], [1, 2, 3], merge=lambda into, part: into + part)
    [14]
    """

    def __deepcopy__(self, memo: object) -> Self:
        """Return the engine itself, so that the copy of an estimator uses the same engine."""
        return self

    @abstractmethod
    def reduce(
        self,
        task: Callable[..., Iterable[T]],
        items: Sequence[Any],
        *shared: Any,
        merge: Callable[[T, T], T],
        large: bool = False,
        tick: Callable[[], object] | None = None,
    ) -> list[T]:
        """Return the merged partial results of `task(item, *shared)` over all items.

        The order of merging depends only on the number of items, not on threads, workers or timing. Tasks run with one
        BLAS thread. So every engine returns exactly the same numbers. If `large` is set, products use all threads,
        and the last digits may differ.

        Parameters
        ----------
        task : callable
            Returns one or more partial results. The first results of all items are merged, then the second ones, and
            so on. The task and its arguments must be picklable. A task may run more than once.
        items : sequence
            Small descriptions of the work, at least one.
        *shared : object
            Further arguments of all tasks. Arrays and other objects are sent once while they exist, so they must not
            change. Numbers, None and tuples are sent with every task.
        merge : callable
            merge(into, part) returns the merged result. It may overwrite `into`, but not `part`.
        large : bool
            Whether the partial results are so large that only one should be in memory. Items are then merged in
            order, without a tree. In this process they are computed one by one, with all BLAS threads.
        tick : callable, optional
            Called once per finished item, to report progress.

        Returns
        -------
        list
            One merged result for each partial result of a task.
        """

    @abstractmethod
    def map(
        self, task: Callable[..., T], items: Sequence[Any], *shared: Any, tick: Callable[[], object] | None = None
    ) -> Iterator[T]:
        """Yield `task(item, *shared)` for all items, in their order.

        This is for results that grow with the rows, such as an error for each row, and for tasks that write a part of
        a file. Only a few results are in memory at a time. Tasks run with one BLAS thread, so every engine yields
        exactly the same numbers.

        Parameters
        ----------
        task : callable
            The task and its arguments must be picklable. A task may run more than once.
        items : sequence
            Small descriptions of the work.
        *shared : object
            Further arguments of all tasks, see `reduce`.
        tick : callable, optional
            Called once per item after its result was used, to report progress.
        """

    @abstractmethod
    def each(
        self, task: Callable[[Any], T], items: Sequence[Any], begun: Callable[[int], object] | None = None
    ) -> Generator[tuple[int, T | Failure], None, None]:
        """Run long independent tasks, and yield the position and the result of each item when it is done.

        If a task fails or its process dies, its result is a `Failure`, and the other tasks continue. Tasks run in
        other processes, with one BLAS thread each.

        Parameters
        ----------
        task : callable
            A function that other processes can import. Items and results must be picklable.
        items : sequence
        begun : callable, optional
            Called with the position of each item when it begins, if the engine knows this.
        """


# Engines by their names in `engine=` and `--engine`.
ENGINES: dict[str, Callable[[str], AbstractContextManager[Engine]]] = {}


def register_engine(name: str, opener: Callable[[str], AbstractContextManager[Engine]]) -> None:
    """Register an engine, so that it can be used everywhere. `del ENGINES[name]` undoes this.

    Parameters
    ----------
    name : str
        The value of `engine` that selects it: "name" or "name:anything".
    opener : callable
        Receives the value of `engine` and returns a context manager that opens the engine and closes it at the end.

    Examples
    --------
    >>> from contextlib import nullcontext
    >>> import numpy as np
    >>> import nearid
    >>> from nearid.engines.base import ENGINES, register_engine
    >>> from nearid.engines.local import Local
    >>> register_engine("mine", lambda name: nullcontext(Local()))
    >>> x = np.random.default_rng(0).normal(size=(60, 2))
    >>> nearid.compare(x, 2 * x, engine="mine", permutations=1).verdict.group
    'permutation'
    >>> del ENGINES["mine"]
    """
    ENGINES[name] = opener


def merge_tree(
    leaves: Iterable[L],
    begin: Callable[[L], A],
    add: Callable[[A, L], A],
    end: Callable[[A], L],
    fan_in: int | None = FAN_IN,
) -> L:
    """Return the leaves merged in a tree whose nodes have `fan_in` children (None: one node), as the leaves arrive.

    A node starts with its first child and adds the others in order. It then becomes a child of the next level. At most
    one unfinished node per level is in memory.
    """
    levels: list[tuple[A, int] | None] = []

    def put(child: L, level: int) -> None:
        if level == len(levels):
            levels.append(None)
        node = levels[level]
        grown, count = (begin(child), 1) if node is None else (add(node[0], child), node[1] + 1)
        levels[level] = (grown, count)
        if count == fan_in:
            levels[level] = None
            put(end(grown), level + 1)

    for leaf in leaves:
        put(leaf, 0)
    if not levels:
        raise ValueError("There is nothing to merge: at least one item is needed.")
    # An unfinished node becomes the last child of the next level.
    level = 0
    while True:
        node, levels[level] = levels[level], None
        if node is not None:
            if not any(levels):
                return end(node[0])
            put(end(node[0]), level + 1)
        level += 1


def merge_parts(into: list[T], parts: Iterable[T], merge: Callable[[T, T], T]) -> list[T]:
    """Return partial results merged position by position. Parts are taken one at a time."""
    for place, part in enumerate(parts):
        into[place] = merge(into[place], part)
    return into


def held_nodes(items: int) -> int:
    """Return the maximum number of unfinished nodes in the tree of so many items."""
    levels = 1
    while items > FAN_IN:
        items, levels = -(-items // FAN_IN), levels + 1
    return levels
