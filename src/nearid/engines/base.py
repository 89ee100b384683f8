"""Where passes over row blocks and independent tasks run: one interface, and the one tree in which parts are merged."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Self, TypeVar

A = TypeVar("A")
L = TypeVar("L")
T = TypeVar("T")

# Children of a node of the tree.
FAN_IN = 8


@dataclass(frozen=True)
class Failure:
    """What became of a task that gave no result.

    Attributes
    ----------
    error : str
        What went wrong, in a line.
    trace : str
        Where, as Python tells it; empty where its process ended without a word.
    """

    error: str
    trace: str = ""


class Engine(ABC):
    """Something that runs the same task on every item: passes, whose parts are merged, or tasks that stand alone.

    Examples
    --------
    >>> from nearid.engines.local import Local
    >>> Local().reduce(lambda item: [item**2], [1, 2, 3], merge=lambda into, part: into + part)
    [14]
    """

    def __deepcopy__(self, memo: object) -> Self:
        """An engine is a place: a copy of an estimator that runs there runs in the same place."""
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
        """Merge the partial results of `task(item, *shared)` over all items.

        The order of merging depends on the number of items alone, never on threads, workers or time, and tasks run with
        one thread of BLAS: every engine gives the same bytes. Where partial results are large, the last digits may
        differ, as products then use all threads.

        Parameters
        ----------
        task : callable
            Gives one or more partial results, each of which is merged with those in the same place of the other items.
            Tasks and what they are given are picklable; a task may run more than once.
        items : sequence
            Small descriptions of what to work on, at least one.
        *shared : object
            What all tasks are given. Arrays and other objects travel once for as long as they live, so they must not
            change; numbers, None and tuples travel with every task.
        merge : callable
            merge(into, part) gives the merged result; it may overwrite `into`, never `part`.
        large : bool
            Whether partial results are so large that one at a time is to be held: all items are merged in order,
            without a tree, and in this process the items come one by one, with all of BLAS's threads.
        tick : callable, optional
            Called once per finished item, for progress.

        Returns
        -------
        list
            One merged result for each partial result of a task.
        """

    @abstractmethod
    def each(
        self, task: Callable[[Any], T], items: Sequence[Any], begun: Callable[[int], object] | None = None
    ) -> Generator[tuple[int, T | Failure], None, None]:
        """Run long tasks that know nothing of each other; give the place and result of each as it is done.

        A task that fails, or whose process dies, gives a `Failure` and takes no other with it. Tasks run in other
        processes than this, with one thread of BLAS.

        Parameters
        ----------
        task : callable
            A function that other processes can import; items and results are picklable.
        items : sequence
        begun : callable, optional
            Told the place of each item that is begun, where the engine knows.
        """


# Engines by the name that `engine=` and `--engine` take.
ENGINES: dict[str, Callable[[str], AbstractContextManager[Engine]]] = {}


def register_engine(name: str, opener: Callable[[str], AbstractContextManager[Engine]]) -> None:
    """Make an engine known wherever an engine is taken; `del ENGINES[name]` takes it back.

    Parameters
    ----------
    name : str
        What `engine` is to be, or how it begins: "name" and "name:anything" are opened.
    opener : callable
        Given what the user typed, returns a context that gives the engine and closes it at the end.

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
    """Merge leaves in a tree whose nodes have `fan_in` children (None: one node for all), as the leaves come.

    A node begins with its first child, adds the others in order, and ends as a child of the next level; one
    unfinished node a level is held.
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
    # What is unfinished is the last child of the next level.
    level = 0
    while True:
        node, levels[level] = levels[level], None
        if node is not None:
            if not any(levels):
                return end(node[0])
            put(end(node[0]), level + 1)
        level += 1


def merge_parts(into: list[T], parts: Iterable[T], merge: Callable[[T, T], T]) -> list[T]:
    """Merge partial results place by place; parts are taken one at a time."""
    for place, part in enumerate(parts):
        into[place] = merge(into[place], part)
    return into


def held_nodes(items: int) -> int:
    """Unfinished nodes that the tree of so many items holds at most."""
    levels = 1
    while items > FAN_IN:
        items, levels = -(-items // FAN_IN), levels + 1
    return levels
