"""Opening the engine that a user names."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from nearid.base.errors import EngineError, InputError
from nearid.engines.base import Engine
from nearid.engines.local import LOCAL, cores
from nearid.engines.processes import no_working_folder


@contextmanager
def open_engine(engine: str | Engine | None) -> Iterator[Engine]:
    """Give an engine, and close what was opened for it.

    Parameters
    ----------
    engine : {"local", "dask"}, address, Engine or None
        None and "local": this process. "dask": a Dask cluster of as many processes as this machine has cores, for as
        long as it is needed. An address such as "tcp://127.0.0.1:8786": the cluster of the Dask scheduler there.
        An engine is given back as it is.
    """
    if isinstance(engine, Engine):
        yield engine
    elif engine is None or engine == "local":
        yield LOCAL
    elif engine == "dask":
        with _own_cluster() as address, _connected(address) as cluster:
            yield cluster
    elif isinstance(engine, str) and ":" in engine:
        with _connected(engine) as cluster:
            yield cluster
    else:
        raise InputError(
            f'The engine must be "local", "dask" or the address of a Dask scheduler such as tcp://127.0.0.1:8786, '
            f"not {engine!r}."
        )


@contextmanager
def _connected(address: str) -> Iterator[Engine]:
    _require_distributed()
    from nearid.engines.cluster import Cluster

    with Cluster(address) as cluster:
        yield cluster


@contextmanager
def _own_cluster() -> Iterator[str]:
    """A cluster of this machine's cores, without a dashboard; gives its address."""
    _require_distributed()
    from distributed import LocalCluster

    # Even without a dashboard there is a server for it, which by default would complain of a port in use.
    server = {"dashboard_address": "127.0.0.1:0"}
    # Processes that die are started again meanwhile.
    with (
        no_working_folder(),
        LocalCluster(
            n_workers=cores(),
            threads_per_worker=1,
            dashboard_address=None,
            scheduler_kwargs=server,
            # What goes wrong is raised here, once and in words.
            silence_logs=logging.CRITICAL,
        ) as cluster,
    ):
        yield cluster.scheduler_address


def _require_distributed() -> None:
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise EngineError(
            "A Dask engine needs the package distributed, which is not installed: pip install 'nearid[distributed]'."
        ) from None
