"""Do two versions of nearid give the same numbers? Runs 20 commands with both and compares their JSON.

    python benchmarks/same_results.py --old OLD/.venv/bin/nearid --new .venv/bin/nearid

Inputs are drawn from fixed seeds. Keys of the old JSON are renamed by KEYS, the table that the changelog of the new
version prints; what is still missing, added or different is listed. Exit code 1 where a value differs or is missing, or
where a command fails in either version.
"""

import argparse
import json
import math
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

# Name and arguments; "{}" is a place for what is written.
COMMANDS = {
    "compare": "compare a.npy b.npy",
    "compare-linear": "compare a.npy c.npy --groups rigid,linear",
    "compare-ica": "compare a.npy b.npy --groups permutation,rigid,linear,ica",
    "compare-wide": "compare a.npy w.npy --in-sample",
    "compare-both-ways": "compare a.npy w.npy --symmetric",
    "compare-many": "compare a.npy b.npy c.npy",
    "compare-options": "compare a.npy b.npy --no-scale --ridge 0.5 --folds 3 --seed 7 --svcca-k 3",
    "compare-table": "compare p.parquet p.parquet --features f* --seed 1",
    "layers": "layers out1 out2 --layers ** --measures cka,cca,r2,mcc",
    "score": "score a.npy u.csv --periods ang=360 --measures mcc,r2,mig,sap,modularity",
    "score-infomec": "score a.npy u.csv --measures infomec,explicitness,dci_l1 --permutations 2",
    "score-dci": "score a.npy u.csv --measures dci --permutations 1 --max-rows 300",
    "score-ica": "score b.npy u.csv --measures mcc,r2 --resolve ica",
    "score-kinds": "score a.npy u.csv --measures mcc,r2 --kinds n=categorical --kinds k=continuous",
    "unmix": "unmix b.npy -o {}",
    "unmix-options": "unmix b.npy -o {} --n-components 4 --contrast exp --stability 2",
    "heads": "heads h1.npy h2.npy a.npy b.npy",
    "lipschitz": "lipschitz m.safetensors x32.npy --factory made:net --points 100",
    "extract": "extract m.safetensors x32.npy --factory made:net -o {}",
    "deconfound": "deconfound p.parquet --labels label --batches plate --control dmso --classifiers logistic",
    "radial": "reproduce radial --preset smoke --out {}",
}

# Options that the new version calls otherwise.
OPTIONS = {
    "compare out1 out2": "layers out1 out2",
    "--periods ang=360": "--periods ang=360",
    "--kinds n=categorical --kinds k=continuous": "--kinds n=categorical --kinds k=continuous",
    "--components": "--n-components",
    "--labels label --batches plate": "--labels label --batches plate",
}

# Old keys (regular expressions of whole paths) and what they are called now; None for what the new version leaves out.
KEYS: list[tuple[str, str | None]] = [
    (r"provenance\.options\.seed$", "provenance.options.random_state"),
    # compare, and the ladder of score: an Estimate where there were value, ends and chance side by side.
    (r"^((?:reverse|pairs\.\d+)\.)?in_sample\.cca\.mean$", r"\1in_sample_similarity.cca"),
    (r"^((?:reverse|pairs\.\d+)\.)?in_sample\.cca\.all", r"\1in_sample_similarity.correlations"),
    (r"^((?:reverse|pairs\.\d+)\.)?in_sample\.(svcca|cka)$", r"\1in_sample_similarity.\2"),
    (r"(groups|in_sample)\.(\w+)\.epsilon\.mean$", r"\1.\2.epsilon.value"),
    (r"(groups|in_sample)\.(\w+)\.epsilon\.(median|q95|max)$", r"\1.\2.\3"),
    (r"(groups|in_sample)\.(\w+)\.chance$", r"\1.\2.epsilon.chance"),
    (r"(groups|in_sample)\.(\w+)\.r2$", r"\1.\2.r2.value"),
    (r"(groups|in_sample)\.(\w+)\.r2_(low|high)$", r"\1.\2.r2.\3"),
    (r"(groups|in_sample)\.(\w+)\.chance_r2$", r"\1.\2.r2.chance"),
    (r"^((?:reverse|pairs\.\d+)\.)?cca\.mean$", r"\1similarity.cca"),
    (r"^((?:reverse|pairs\.\d+)\.)?cca\.all", r"\1similarity.correlations"),
    (r"^((?:reverse|pairs\.\d+)\.)?(svcca|cka)$", r"\1similarity.\2"),
    (r"similarity_chance", "chance_similarity"),
    # score: the group with a scale for each factor has a name of its own.
    (r"structure\.groups\.permutation", "structure.groups.scaled_permutation"),
    # unmix
    (r"^options\.engine$", None),
    (r"^options\.(contrast|max_passes|n_components|random_state|stability|tol|whiten)$", r"provenance.options.\1"),
    (r"^seed$", "provenance.seed"),
    (r"^input\.", "provenance.inputs.0."),
    (r"^diagnostics\.cautions\.(\d+)\.kind$", r"alerts.\1.code"),
    (r"^diagnostics\.cautions\.(\d+)\.text$", r"alerts.\1.message"),
    # heads
    (r"provenance\.inputs\.(\d)$", r"provenance.inputs.\1.fingerprint"),
    # lipschitz
    (r"(local|scaled)\.(mean|low|high)$", r"\1.mean.\2"),
    (r"\.mean\.mean$", ".mean.value"),
    (r"(local|scaled)\.quantiles\.\d\.share$", None),
    *((rf"(local|scaled)\.quantiles\.{k}\.", rf"\1.quantiles.{q}.") for k, q in enumerate((0.05, 0.5, 0.95, 0.99))),
    (r"^provenance\.latents\.", "provenance.inputs.0."),
    # deconfound
    (r"^scores\.(\d+)\.found\.", r"scores.\1."),
    (r"^tests\.(\d+)\.difference$", r"tests.\1.difference.value"),
    (r"^tests\.(\d+)\.(low|high)$", r"tests.\1.difference.\2"),
    (r"^tests\.(\d+)\.pairs$", r"tests.\1.difference.n"),
    (r"^provenance\.input\.", "provenance.inputs.0."),
    (r"provenance\.options\.components$", "provenance.options.n_components"),
    (r"^provenance\.ica\.cautions\.", None),
    # extract
    (r"^(format|model|data|options|versions)(\.|$)", r"provenance.\1\2"),
]

# Answers of `score` that changed on purpose: the name of a group.
WORDS = {"permutation": "scaled_permutation"}
NAMES_A_GROUP = re.compile(r"(^|\.)verdict\.(group|yardstick)$")

# Depend on the machine, the moment or the version; or are sentences, whose words may change.
VOLATILE = re.compile(
    r"(^|\.)(seconds|core_seconds|machine|nearid|python|numpy|torch|created|command|source|folder|out|took)(\.|$)"
    r"|(reason|message)$"
)


def draw(folder: Path) -> None:
    """Write the inputs."""
    import pandas as pd
    import torch
    from safetensors.torch import save_file

    rng = np.random.default_rng(0)
    z = rng.laplace(size=(600, 6))
    q = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    noise = rng.normal(size=(600, 6))
    arrays = {"a": z, "b": 2 * z @ q + 1 + 0.05 * noise, "c": z @ rng.normal(size=(6, 6)) + 0.1 * noise}
    arrays |= {"w": z @ rng.normal(size=(6, 9)), "x32": z.astype(np.float32)}
    arrays |= {"h1": (h1 := rng.normal(size=(40, 6))), "h2": h1 @ q / 2}
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    angle = np.degrees(np.arctan2(z[:, 3], z[:, 4])) % 360
    factors = {"x": 2 * z[:, 0], "y": z[:, 1] ** 3, "k": (z[:, 2] > 0).astype(int), "ang": angle}
    pd.DataFrame({**factors, "n": np.round(2 * z[:, 5]).astype(int)}).to_csv(folder / "u.csv", index=False)
    labels = np.array(["dmso", "drugA", "drugB"])[rng.integers(0, 3, 600)]
    plates = rng.integers(0, 6, 600)
    shifted = z + 1.5 * np.outer(labels == "drugA", np.eye(6)[0]) + 0.4 * np.outer(plates, np.eye(6)[1])
    table = pd.DataFrame(shifted, columns=[f"f{k}" for k in range(6)])
    table.assign(label=labels, plate=[f"p{k}" for k in plates]).to_parquet(folder / "p.parquet")
    torch.manual_seed(0)
    made = "torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 8))"
    (folder / "made.py").write_text(f"import torch\n\n\ndef net():\n    return {made}\n")
    for name in ("m", "m2"):
        save_file(eval(made).state_dict(), folder / f"{name}.safetensors")


def run(nearid: str, arguments: str, folder: Path) -> dict:
    """The JSON that a command prints."""
    words = [word.format(folder / "written") if "{}" in word else word for word in arguments.split()]
    done = subprocess.run([nearid, *words, "--json"], cwd=folder, capture_output=True, text=True)
    subprocess.run(["rm", "-rf", folder / "written"], check=True)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1]}
    return json.loads(done.stdout)


def flat(value: object, path: str = "") -> dict[str, object]:
    """Leaves by their path."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return {p: leaf for key, v in items for p, leaf in flat(v, f"{path}.{key}".strip(".")).items()}
    return {path: value}


def renamed(path: str) -> str | None:
    """The new path of an old one."""
    for old, new in KEYS:
        if re.search(old, path):
            if new is None:
                return None
            path = re.sub(old, new, path)
    return path


def expected(command: str, before: dict) -> dict[str, object]:
    """What the new version is to print: the leaves of the old JSON by their new paths."""
    leaves: dict[str, object] = {}
    for old, value in flat(before).items():
        path = renamed(old)
        if path is None or VOLATILE.search(old) or VOLATILE.search(path):
            continue
        if command.startswith("score") and NAMES_A_GROUP.search(path):
            value = WORDS.get(str(value), value)
        leaves[path] = value
    return leaves


def same(a: object, b: object) -> bool:
    """Whether two leaves agree, numbers up to the last digits."""
    if isinstance(a, float | int) and isinstance(b, float | int):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
    return a == b


def main() -> None:
    """Compare two versions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old", required=True)
    parser.add_argument("--new", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--kept", type=Path, help="folder that keeps the JSON of the old version")
    chosen = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        draw(folder)
        for k in (1, 2):
            words = f"extract m{'2' if k == 2 else ''}.safetensors x32.npy --factory made:net -o out{k}".split()
            subprocess.run([chosen.old, *words], cwd=folder, check=True, capture_output=True)
        for name, old in COMMANDS.items():
            if chosen.only not in name:
                continue
            kept = chosen.kept / f"{name}.json" if chosen.kept else None
            before = json.loads(kept.read_text()) if kept and kept.exists() else run(chosen.old, old, folder)
            if kept and not kept.exists():
                kept.write_text(json.dumps(before))
            new = old
            for was_called, is_called in OPTIONS.items():
                new = new.replace(was_called, is_called)
            after = run(chosen.new, new, folder)
            failed = {version: run["error"] for version, run in (("old", before), ("new", after)) if "error" in run}
            if failed:
                wrong += 1
                print(f"{name:18} failed: {failed}")
                continue
            was = expected(name, before)
            now = {p: v for p, v in flat(after).items() if not VOLATILE.search(p)}
            missing = [p for p in was if p not in now]
            differ = [p for p in was if p in now and not same(was[p], now[p])]
            added = [p for p in now if p not in was]
            wrong += len(missing) + len(differ)
            print(f"{name:18} {len(was):5} values, {len(differ)} differ, {len(missing)} missing, {len(added)} new")
            for p in differ[:8]:
                print(f"    {p}: {was[p]!r} -> {now[p]!r}")
            for title, paths in (("missing", missing), ("new", added)):
                if paths:
                    print(f"    {title}: {', '.join(paths[:12])}{' ...' if len(paths) > 12 else ''}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
