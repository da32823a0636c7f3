"""Prediction: `funcpipe simulate` against real runs of the same plans on the local platform.

    /usr/bin/python3 bench/prediction.py PATH_OF_FUNCPIPE [--steps 8] [--only MODEL] [-o docs/prediction.md]

For each model it measures a profile as functions (funcpipe profile), then trains every plan for real, with the links and CPU
shares of a function, and simulates it from the profile. Time dilation lets all functions of a plan keep their shares on the
cores of this machine. Compared is the steady time of a step: the median of all steps but the first. Exits with 1 if the
median error is above 10 % or the largest above 20 %.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

LINK = {"kind": "local", "uplink": "70 MB/s", "downlink": "70 MB/s", "latency": "10 ms"}
SMALL, MIDDLE, LARGE = 1024, 1769, 2048
MODELS = {
    "lenet": {
        "model": {"builtin": "lenet", "options": {"channels": [32, 64], "hidden": [512]}},
        "training": {"batch_size": 128, "micro_batch_size": 16, "optimizer": {"kind": "adam"}},
        "plans": [  # cuts, memory, replicas
            ([], [MIDDLE], 1),
            ([3], [MIDDLE, SMALL], 1),
            ([3], [LARGE, MIDDLE], 2),
            ([1, 3, 6], [MIDDLE, MIDDLE, LARGE, SMALL], 2),
            ([3], [MIDDLE, MIDDLE], 4),
        ],
    },
    "mlp": {
        "model": {"builtin": "mlp", "options": {"hidden": [1024, 1024, 1024, 512]}},
        "training": {"batch_size": 512, "micro_batch_size": 64, "optimizer": {"kind": "sgd", "momentum": 0.9}},
        "plans": [
            ([], [MIDDLE], 2),
            ([5], [SMALL, MIDDLE], 1),
            ([3, 6], [MIDDLE, LARGE, SMALL], 2),
            ([5], [MIDDLE, MIDDLE], 4),
        ],
    },
    "resnet-small": {
        "model": {"builtin": "resnet-small", "options": {"image": [1, 28, 28], "channels": [16, 32, 64], "blocks": 1}},
        "training": {"batch_size": 64, "micro_batch_size": 8, "optimizer": {"kind": "adamw"}},
        "plans": [
            ([], [LARGE], 1),
            ([], [MIDDLE], 4),
            ([4], [MIDDLE, MIDDLE], 2),
            ([3, 4], [SMALL, LARGE, MIDDLE], 1),
            ([1, 3, 4], [SMALL, MIDDLE, LARGE, MIDDLE], 4),
        ],
    },
}


def run(*command):
    result = subprocess.run([*map(str, command)], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stderr}")
    return result.stdout


def random_images(funcpipe, folder, records):
    """A dataset of MNIST's shape: speed does not depend on what the images show."""
    random = np.random.RandomState(1)
    np.save(folder / "inputs.npy", random.randint(0, 256, (records, 1, 28, 28)).astype(np.uint8))
    np.save(folder / "targets.npy", random.randint(0, 10, records).astype(np.uint8))
    run(funcpipe, "data", "import", "pair", "--inputs", folder / "inputs.npy", "--targets", folder / "targets.npy",
        "--classes", 10, "-o", folder / "train")
    return folder / "train"


def write_job(path, data, case, steps, dilation):
    job = {
        "model": case["model"],
        "data": {"train": str(data)},
        "training": {**case["training"], "steps": steps},
        "platform": {**LINK, "time_dilation": dilation},
    }
    path.write_text(json.dumps(job))
    return path


def measured(funcpipe, job, plan, run_dir):
    run(funcpipe, "train", job, "--run-dir", run_dir, "--set", f"plan={json.dumps(plan)}", "--overwrite")
    lines = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    return statistics.median(line["seconds"] for line in lines if line.get("seconds", 0) > 0)


def simulated(funcpipe, job, plan, profile, steps):
    answer = run(funcpipe, "simulate", job, "--profile", profile, "--set", f"plan={json.dumps(plan)}",
                 "--steps", steps, "--json")
    return json.loads(answer)["iteration_seconds"]


def compare(funcpipe, name, case, options, folder, data):
    job = write_job(folder / f"{name}.json", data, case, options.steps, options.dilation)
    memory = sorted({size for _, sizes, _ in case["plans"] for size in sizes})
    profile = folder / f"{name}.profile.json"
    run(funcpipe, "profile", job, "-o", profile, "--memory", ",".join(map(str, memory)), "--fresh")
    for cuts, sizes, replicas in case["plans"]:
        plan = {"cuts": cuts, "memory_mb": sizes, "replicas": replicas}
        if not cuts:
            del plan["cuts"]
        real = measured(funcpipe, job, plan, folder / "run")
        predicted = simulated(funcpipe, job, plan, profile, options.steps)
        row = [name, len(cuts) + 1, replicas, " ".join(map(str, sizes)), real, predicted, predicted / real - 1]
        print("{:<14} {}x{}  {:<22} measured {:.3f} s  simulated {:.3f} s  {:+.1%}".format(*row), flush=True)
        yield row


def markdown(rows, options, median, worst):
    lines = [
        "# Prediction against measurement",
        "",
        "`funcpipe simulate` from a measured profile, against real runs of the same plans on the local platform with CPU shares, links",
        f"of 70 MB/s each way and 10 ms latency, time dilation {options.dilation:g}; seconds of a steady step in the platform's time (median of",
        f"{options.steps - 1} steps). Made by `/usr/bin/python3 bench/prediction.py build/release/funcpipe -o docs/prediction.md`.",
        "",
        "| model | stages x replicas | memory of the stages (MB) | measured | simulated | error |",
        "|---|---|---|---|---|---|",
    ]
    for name, stages, replicas, sizes, real, predicted, error in rows:
        lines.append(f"| {name} | {stages} x {replicas} | {sizes} | {real:.3f} s | {predicted:.3f} s | {error:+.1%} |")
    lines += ["", f"Error of the {len(rows)} plans: median {median:.1%}, largest {worst:.1%}.", ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("funcpipe")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--dilation", type=float, default=12)
    parser.add_argument("--only", choices=MODELS)
    parser.add_argument("-o", "--output")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="funcpipe-prediction-") as temporary:
        folder = Path(temporary)
        data = random_images(options.funcpipe, folder, 4096)
        rows = []
        for name, case in MODELS.items():
            if options.only in (None, name):
                rows += compare(options.funcpipe, name, case, options, folder, data)
    errors = [abs(row[-1]) for row in rows]
    median, worst = statistics.median(errors), max(errors)
    print(f"error of {len(rows)} plans: median {median:.1%}, largest {worst:.1%}")
    if options.output:
        Path(options.output).write_text(markdown(rows, options, median, worst))
    sys.exit(0 if median <= 0.10 and worst <= 0.20 else 1)


if __name__ == "__main__":
    main()
