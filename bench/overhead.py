"""Steady-state overhead: one function of the local platform against the plain PyTorch loop.

    /usr/bin/python3 bench/overhead.py PATH_OF_FUNCPIPE [--train DIR] [--pairs 5] [--steps 150] [--skip 20]

Both train the same archive on the same records in the same order, with one thread and the same BLAS kernel, one after
the other, in turns. A run's speed is its samples by its seconds over all steps but the first --skip; start-up does not
count. Prints both speeds of each pair and the median of their ratios (1.00: no overhead; the goal is 0.90).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SOURCE = Path(__file__).resolve().parent.parent
IMAGE = [1, 28, 28]
CASES = {
    "lenet": {
        "model": {"builtin": "lenet"},
        "batch_size": 128,
        "micro_batch_size": 32,
        "optimizer": {"kind": "sgd", "learning_rate": 0.01, "momentum": 0.9},
    },
    "resnet-small": {
        "model": {"builtin": "resnet-small", "options": {"image": IMAGE, "channels": [8, 16], "blocks": 1}},
        "batch_size": 64,
        "micro_batch_size": 16,
        "optimizer": {"kind": "sgd", "learning_rate": 0.01, "momentum": 0.9},
    },
}


def blas_kernel():
    """OpenBLAS's kernel for this CPU, by the worker's rule."""
    flags = set(Path("/proc/cpuinfo").read_text().split("flags", 1)[-1].split("\n", 1)[0].split())
    if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= flags:
        return {"OPENBLAS_CORETYPE": "SKYLAKEX"}
    return {"OPENBLAS_CORETYPE": "HASWELL"} if {"avx2", "fma"} <= flags else {}


ENVIRONMENT = {
    **os.environ,
    **blas_kernel(),
    "PYTHONPATH": str(SOURCE / "python"),
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "passive",
}


def run(*command):
    result = subprocess.run([*map(str, command)], env=ENVIRONMENT, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stderr}")


def random_images(funcpipe, folder, records=20000):
    """A dataset of MNIST's shape: speed does not depend on what the images show."""
    random = np.random.RandomState(1)
    np.save(folder / "inputs.npy", random.randint(0, 256, (records, *IMAGE)).astype(np.uint8))
    np.save(folder / "targets.npy", random.randint(0, 10, records).astype(np.uint8))
    run(funcpipe, "data", "import", "pair", "--inputs", folder / "inputs.npy", "--targets", folder / "targets.npy",
        "--classes", 10, "-o", folder / "train")
    return folder / "train"


class Case:
    """One model, its archive and its job."""

    def __init__(self, name, options, folder):
        self._case, self._options, self._folder = CASES[name], options, folder
        self._archive, self._job = folder / f"{name}-archive", folder / f"{name}.yaml"
        model = self._case["model"]
        run(options.funcpipe, "model", "write", model["builtin"], "--options", json.dumps(model.get("options", {})),
            "-o", self._archive)
        training = {key: value for key, value in self._case.items() if key != "model"}
        self._job.write_text(json.dumps({
            "model": {"archive": str(self._archive)},
            "data": {"train": str(options.train)},
            "training": {"steps": options.steps, **training},
            "platform": {"kind": "local", "cpu_limit": False},
        }))

    def funcpipe_speed(self):
        run_dir = self._folder / "run"
        run(self._options.funcpipe, "train", self._job, "--run-dir", run_dir, "--overwrite")
        lines = map(json.loads, (run_dir / "metrics.jsonl").read_text().splitlines())
        return self._speed([line["seconds"] for line in lines if "step" in line])

    def pytorch_speed(self):
        """From when the loop's lines arrive, one a step."""
        optimizer = self._case["optimizer"]
        command = [sys.executable, "-m", "funcpipe.reference", "--model", self._archive,
                   "--train", self._options.train, "--steps", self._options.steps, "--sequential",
                   "--batch-size", self._case["batch_size"], "--micro-batch-size", self._case["micro_batch_size"],
                   "--optimizer", optimizer["kind"], "--lr", optimizer["learning_rate"],
                   "--momentum", optimizer["momentum"]]
        arrivals = []
        with subprocess.Popen([*map(str, command)], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                if '"step"' in line:
                    arrivals.append(time.perf_counter())
        if process.returncode != 0:
            sys.exit("the PyTorch loop failed")
        return self._speed([0.0] + [b - a for a, b in zip(arrivals, arrivals[1:])])

    def _speed(self, step_seconds):
        steady = step_seconds[self._options.skip:]
        return self._case["batch_size"] * len(steady) / sum(steady)


def parse():
    parser = argparse.ArgumentParser(description="Steady-state overhead of one function against plain PyTorch.")
    parser.add_argument("funcpipe", type=os.path.abspath, help="the binary")
    parser.add_argument("--train", type=Path, help="dataset of 28 x 28 images (default: random ones)")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=150, help="of each run, all in the first epoch")
    parser.add_argument("--skip", type=int, default=20, help="steps that warm up")
    return parser.parse_args()


def main():
    options = parse()
    with tempfile.TemporaryDirectory(prefix="funcpipe-bench-") as name:
        folder = Path(name)
        options.train = options.train or random_images(options.funcpipe, folder)
        for name in options.cases:
            case, ratios = Case(name, options, folder), []
            for _ in range(options.pairs):
                ours, theirs = case.funcpipe_speed(), case.pytorch_speed()
                ratios.append(ours / theirs)
                print(f"{name}: funcpipe {ours:.0f}, PyTorch {theirs:.0f} samples/s, ratio {ratios[-1]:.2f}", flush=True)
            print(f"{name}: median ratio {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
