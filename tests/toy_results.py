"""Results of the toy experiment, for tests of several rooms."""

import pytest

from nearid.engines.base import Engine
from nearid.engines.processes import attempt
from toy_experiments import TOY


class Inline(Engine):
    """An engine without processes."""

    def reduce(self, *args, **options):
        raise NotImplementedError

    def map(self, *args, **options):
        raise NotImplementedError

    def each(self, task, items, begun=None):
        for k, item in enumerate(items):
            if begun:
                begun(k)
            yield k, attempt(task, item)


def _cells(changes):
    """The toy experiment run in this process."""
    from nearid.lab.framework.run import reproduce

    return reproduce(TOY, seeds=3, parameters=changes, engine=Inline())


@pytest.fixture(scope="session")
def result():
    """A whole result of the toy experiment."""
    return _cells({})


@pytest.fixture(scope="session")
def failing():
    """One of which a seed failed."""
    return _cells({"wrong": 1})
