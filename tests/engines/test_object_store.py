"""Workers in processes of their own that read from a real S3 server, also one that is slow, fails or lacks a chunk."""

import json
import re
import time

import numpy as np
import pytest

from s3_server import BUCKET, system, through_a_proxy

pytest.importorskip("distributed", reason="the extra `distributed` is not installed")


import nearid
import nearid.engines.local as local
from nearid.arrays import open_rows, remote
from nearid.base.errors import EngineError, InputError

zarr = pytest.importorskip("zarr")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """256 rows a block, so that every pass has a dozen tasks."""
    monkeypatch.setattr(local, "BLOCK_BYTES", 1)


@pytest.fixture
def proxy(bucket, s3, monkeypatch, tmp_path, stored):
    """The store behind a proxy, with a second array in it."""
    turned = stored @ np.random.default_rng(1).normal(size=(5, 5)) + stored**3 / 50
    zarr.create_array(tmp_path / "turned.zarr", data=turned, chunks=(500, 5))
    for file in (tmp_path / "turned.zarr").rglob("*"):
        if file.is_file():
            system().pipe_file(f"{BUCKET}/{file.relative_to(tmp_path)}", file.read_bytes())
    with through_a_proxy(s3) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.address)
        remote._made.cache_clear()
        yield proxy


@pytest.mark.timeout(400)
def test_workers_read_the_bucket_themselves(bucket, proxy, processes, request, tmp_path):
    run = request.getfixturevalue("nearid")

    def told(*words):
        done = run(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    engines = (["--engine", processes.address], ["--engine", "local"])
    pair = f"{bucket}/v3.zarr", f"{bucket}/turned.zarr"
    there, here = (json.loads(told("compare", *pair, "--permutations", "3", "--json", *engine)) for engine in engines)
    assert there == here and there["verdict"]["group"] == "linear"
    for name, engine in zip(("there", "here"), engines, strict=True):
        told("unmix", pair[1], "-o", name, "--format", "zarr", *engine)
    there, here = (
        {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
        for folder in (tmp_path / name / "components.zarr" for name in ("there", "here"))
    )
    assert there == here and len(there) > 5


def test_workers_without_credentials(processes, bucket, tmp_path):
    # The workers were started before the variables of the store were set.
    rows, began = open_rows(f"{bucket}/v3.zarr"), time.monotonic()
    with pytest.raises(InputError, match=r"rows-of-a-test/v3\.zarr.* refuses access\. Set AWS_ACCESS_KEY_ID"):
        nearid.Whitening(engine=processes.address).fit(rows)
    assert time.monotonic() - began < 60


@pytest.mark.timeout(240)
def test_what_goes_wrong_while_workers_read(bucket, s3, proxy, processes):
    def compared(change):
        # It goes wrong after the first block, in the pass of moments or of errors. This process reads nothing then.
        began = []

        def stage(name, steps):
            def tick(note=""):
                if name == "moments" and not began:
                    change()
                    began.append(time.monotonic())

            return tick

        pair = (f"{bucket}/v3.zarr", f"{bucket}/turned.zarr")
        with pytest.raises((EngineError, InputError)) as caught:
            nearid.compare(*pair, blocks="none", permutations=1, engine=processes.address, progress=stage)
        return str(caught.value), time.monotonic() - began[0]

    message, seconds = compared(lambda: proxy.fail("error"))
    assert re.search(
        r"A worker at tcp://\S+ cannot read the rows \(s3://rows-of-a-test/(v3|turned)\.zarr/\S+ could not be", message
    )  # whichever side is read first after the change
    # Three attempts for each object, with pauses of .5 and 1 s. Several tasks may read the same chunk. The rest is the
    # load of the machine.
    assert seconds < 60 and "in 3 attempts" in message
    proxy.fail("")
    message, seconds = compared(lambda: system(s3).rm_file(f"{BUCKET}/v3.zarr/c/4/0"))
    assert "lacks the chunk c/4/0" in message and seconds < 60


def test_a_server_that_trickles_is_given_up(bucket, proxy, monkeypatch):
    monkeypatch.setattr(remote, "SECONDS", 0.5)
    rows = open_rows(f"{bucket}/v3.zarr")
    proxy.fail("trickle")
    began = time.monotonic()
    with pytest.raises(InputError, match=r"could not be read in 3 attempts: no complete answer within . seconds"):
        rows.read(0, 10)
    # Half a second and .08 for the 20 kB of a chunk, three times, and pauses of .01 and .02 s.
    assert 1.5 < time.monotonic() - began < 10 and len(proxy.failed) == 3


def test_a_comparison_with_a_server_that_trickles_ends(bucket, proxy, monkeypatch):
    monkeypatch.setattr(remote, "SECONDS", 0.5)
    sides = [open_rows(f"{bucket}/{name}") for name in ("v3.zarr", "turned.zarr")]
    proxy.fail("trickle")
    began = time.monotonic()
    with pytest.raises(InputError, match=r"could not be read in 3 attempts"):
        nearid.compare(*sides, permutations=1)
    assert time.monotonic() - began < 20


def test_a_server_that_fails_twice_is_asked_again(bucket, proxy, stored):
    rows = open_rows(f"{bucket}/v3.zarr")
    proxy.fail("error", times=2)
    np.testing.assert_array_equal(rows.read(0, 3000), stored)
    assert len(proxy.failed) == 2
