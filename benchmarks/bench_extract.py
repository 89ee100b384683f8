"""extract() beside a bare forward loop: real CIFAR-10 images through the real ResNet-20, in one process; prints ratios.

usage: python benchmarks/bench_extract.py [--images 10000] [--batch 250] [--repeats 3] [--threads 1] [--flat 500]

The bare loop turns the same bytes into the same normalised batches and calls the model without gradients. Each round
runs the loop, then each extraction; given are the ratios of each round and their median, in wall time and in processor
time, which a busy machine disturbs less. Reads cifar10 and cifar10_resnets below NEARID_DATA. Needs torch and pillow.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import torch
from measure import PeakMemory, row

from nearid import extract
from nearid.lab.data.cifar10_resnets import weights_file
from nearid.lab.data.load import load
from nearid.lab.models.cifar_resnet import MEAN, STD, load_cifar_resnet


def bare(model: torch.nn.Module, pixels: np.ndarray, batch: int) -> None:
    """What people write: the same batches through the model, and nothing kept."""
    mean, std = torch.tensor(MEAN)[:, None, None], torch.tensor(STD)[:, None, None]
    with torch.no_grad():
        for start in range(0, len(pixels), batch):
            x = torch.from_numpy(pixels[start : start + batch].copy()).permute(0, 3, 1, 2).float() / 255
            model((x - mean) / std)


def clocked(function) -> tuple[float, float]:
    """Wall seconds, and seconds of this process on the processors."""
    wall, busy = time.perf_counter(), time.process_time()
    function()
    return time.perf_counter() - wall, time.process_time() - busy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--batch", type=int, default=250)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--flat", type=int, default=500, help="images of which whole maps are written, too; 0 for none")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    model = load_cifar_resnet(weights_file("akamaster-20"))
    pixels = load("cifar10", split="test").images.read(0, asked.images)
    kinds: dict[str, dict[str, str]] = {"the default, blocks, pooled": {}, "every module, pooled": {"layers": "**"}}
    bare(model, pixels[: asked.batch], asked.batch)  # memory and kernels are made ready before the clock starts
    print(
        f"ResNet-20, {len(pixels):,} CIFAR-10 images, batches of {asked.batch}, {asked.threads} thread(s)", flush=True
    )
    base: list[tuple[float, float]] = []
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in kinds}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")

        def run(pixels: np.ndarray, more: dict[str, str]) -> None:
            shutil.rmtree(out, ignore_errors=True)
            extract(model, pixels, out=out, mean=MEAN, std=STD, batch_size=asked.batch, **more)

        for _ in range(asked.repeats):
            base.append(clocked(lambda: bare(model, pixels, asked.batch)))
            print(f"  bare forward loop: wall {base[-1][0]:.2f} s, processor {base[-1][1]:.2f} s", flush=True)
            for name, more in kinds.items():
                times[name].append(clocked(lambda more=more: run(pixels, more)))
                wall, busy = times[name][-1]
                print(f"  extract, {name}: wall {wall:.2f} s, processor {busy:.2f} s;", end=" ")
                print(f"ratio {wall / base[-1][0]:.3f} (asked: 1.15), processor {busy / base[-1][1]:.3f};", end=" ")
                print(f"{len(list(out.glob('*'))) - 2} layers, {written(out) / 1e6:.1f} MB written", flush=True)
        for name, found in times.items():
            means = [median(each[1] for each in runs) for runs in (found, base)]
            row(
                f"extract, {len(pixels):,} images, {name}",
                ours=means[0],
                peer=means[1],
                by="forward loop",
                unit="core s",
            )
            usual = [median(t[k] / b[k] for t, b in zip(found, base, strict=True)) for k in (0, 1)]
            print(f"  median ratio, {name}: wall {usual[0]:.3f} (asked: 1.15), processor {usual[1]:.3f}", flush=True)
        # The watch on memory takes time itself, so that this is apart.
        for count in (len(pixels) // 4, len(pixels) // 2):
            with PeakMemory() as plain:
                bare(model, pixels[:count], asked.batch)
            with PeakMemory() as watch:
                run(pixels[:count], {})
            print(f"  peak memory above the start, {count} images: loop {plain.megabytes:.0f} MB,", end=" ")
            print(f"extract {watch.megabytes:.0f} MB", flush=True)
        if asked.flat:
            few = pixels[: asked.flat]
            loop = clocked(lambda: bare(model, few, asked.batch))
            whole = clocked(lambda: run(few, {"pool": "flatten"}))
            print(f"  whole maps (pool flatten) of {len(few)} images: {written(out) / 1e6:.0f} MB written,", end=" ")
            print(f"ratio wall {whole[0] / loop[0]:.2f}, processor {whole[1] / loop[1]:.2f}")


def written(folder: Path) -> int:
    """Bytes in a folder."""
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())


if __name__ == "__main__":
    main()
