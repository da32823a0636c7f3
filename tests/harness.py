"""What the end-to-end tests share: the binary, small datasets, jobs and runs.

Run a test file as:  /usr/bin/python3 tests/train_test.py PATH_OF_FUNCPIPE [unittest options]
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy as np

SOURCE = Path(__file__).resolve().parent.parent
PYTHON = "/usr/bin/python3"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SOURCE / "python"), "OMP_NUM_THREADS": "1"}
FUNCPIPE = None


def main():
    """Takes the binary's path from the command line and runs the tests of the calling module."""
    global FUNCPIPE
    FUNCPIPE = os.path.abspath(sys.argv.pop(1))
    unittest.main(module="__main__", verbosity=2)


def is_sanitized():
    """Whether the binary was built with the address sanitizer, whose allocator is not the one users get."""
    return b"__asan_init" in Path(FUNCPIPE).read_bytes()


def slowness():
    """How many times longer than usual the binary may take to start and to compute."""
    return 4 if is_sanitized() else 1


def funcpipe(*arguments, timeout=120, **options):
    """Runs the binary; the result has returncode, stdout and stderr."""
    return subprocess.run(
        [FUNCPIPE, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, env=ENVIRONMENT, **options
    )


def python(*arguments, timeout=120):
    return subprocess.run(
        [PYTHON, *map(str, arguments)], capture_output=True, text=True, timeout=timeout, env=ENVIRONMENT, check=True
    )


def write_images(folder, records, seed, shape=(1, 12, 12), classes=4):
    """Byte images whose class is a fixed linear function of their pixels, as inputs.npy and targets.npy."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.RandomState(seed)
    images = random.randint(0, 256, (records, *shape)).astype(np.uint8)
    teacher = np.random.RandomState(7).randn(int(np.prod(shape)), classes)
    labels = (images.reshape(records, -1) / 255.0 - 0.5).dot(teacher).argmax(1).astype(np.int64)
    np.save(folder / "inputs.npy", images)
    np.save(folder / "targets.npy", labels)
    return folder


def import_pair(folder, output, *options):
    return funcpipe(
        "data", "import", "pair", "--inputs", folder / "inputs.npy", "--targets", folder / "targets.npy",
        "-o", output, *options,
    )


def write_job(path, job):
    """A job file; JSON is YAML."""
    Path(path).write_text(json.dumps(job, indent=1))
    return path


def steps_of(run_dir):
    lines = [json.loads(line) for line in (Path(run_dir) / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if "step" in line]


def evaluations_of(run_dir):
    lines = [json.loads(line) for line in (Path(run_dir) / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if "evaluation" in line]


class WorkspaceTest(unittest.TestCase):
    """A class of tests with a folder of its own, `self.work`, and the datasets train (50 records) and test (21)."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="funcpipe-test-")
        cls.work = Path(cls.folder.name)
        for name, records, seed in (("train", 50, 1), ("test", 21, 2)):
            result = import_pair(write_images(cls.work / f"{name}-files", records, seed), cls.work / name, "--classes", "4")
            if result.returncode != 0:
                raise AssertionError(result.stderr)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def job(self, model, training, plan=None, platform=None, **more):
        """A complete job on the class's datasets, small and without CPU shares, so that tests are quick."""
        return {
            "name": "test",
            "seed": 5,
            "model": model,
            "data": {
                "train": str(self.work / "train"),
                "test": str(self.work / "test"),
                "normalize": {"mean": 0.5, "std": 0.25},
            },
            "training": {"batch_size": 16, "micro_batch_size": 3, **training},
            "plan": {"memory_mb": 1769, **(plan or {})},
            "platform": {"kind": "local", "cpu_limit": False, **(platform or {})},
            **more,
        }

    def train(self, name, job, *options, timeout=120):
        """Trains; fails the test with the run's output when it does not end well. Gives the run directory."""
        run_dir = self.work / "runs" / name
        path = write_job(self.work / f"{name}.yaml", job)
        result = funcpipe("train", path, "--run-dir", run_dir, *options, timeout=timeout)
        self.assertEqual(result.returncode, 0, f"{name}: {result.stderr}")
        return run_dir
