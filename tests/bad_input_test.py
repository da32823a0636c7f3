"""Everything a user can get wrong, and what machines do to runs: each ends soon, with one clear error, and leaves nothing."""

import json
import os
import re
import shutil
import signal
import struct
import subprocess
import unittest
from pathlib import Path

import numpy as np
import torch

import harness
from harness import WorkspaceTest, funcpipe, import_pair, write_images, write_job
from process_tree import Run, wait_until

MLP = {"builtin": "mlp", "options": {"inputs": [1, 12, 12], "hidden": [16, 12], "classes": 4}}
ENDLESS = {"steps": 1000000, "evaluate_every_epochs": 0}
QUICK = 20  # seconds any failure may take

# Traces of exceptions, libraries and programmer's errors, none of which tells a user anything.
NOT_FOR_USERS = re.compile(
    r"terminate called|what\(\)|std::|c10|nlohmann|yaml-cpp|YAML::|\[json\.|internal error|Assert|Exception|"
    r"frame #|filesystem error|basic_string|__")


class BadInputTest(WorkspaceTest):
    def setUp(self):
        self.case = re.sub(r".*\.", "", self.id())

    def check_error(self, code, stderr, *expected, expected_code=1, lines=1):
        self.assertEqual(code, expected_code, stderr)
        self.assertIsNone(NOT_FOR_USERS.search(stderr), stderr)
        errors = stderr[stderr.index("funcpipe: "):] if "funcpipe: " in stderr else stderr
        if lines:
            self.assertEqual(len(errors.splitlines()), lines, stderr)
        for text in expected:
            self.assertRegex(errors, text)

    def check_fails(self, arguments, *expected, lines=1):
        result = funcpipe(*arguments, timeout=QUICK)
        self.check_error(result.returncode, result.stderr, *expected, lines=lines)

    def run_dir(self, name=""):
        return self.work / "bad-runs" / f"{self.case}{name}"

    def train_bad(self, job, *expected, started=False, options=(), lines=1):
        """Trains a bad job (a dict, or the text of the file). One that fails before it starts leaves no run directory."""
        path = self.work / f"{self.case}.yaml"
        if isinstance(job, str):
            path.write_text(job)
        else:
            write_job(path, job)
        self.check_fails(["train", path, "--run-dir", self.run_dir(), *options], *expected, lines=lines)
        self.assertFalse((self.run_dir() / "model.safetensors").exists())
        self.assertFalse((self.run_dir() / "store").exists(), "the run's own store is left")
        if not started:
            self.assertFalse(self.run_dir().exists(), "a run directory is left")

    def changed(self, **sections):
        job = self.job(MLP, {"steps": 2})
        for section, changes in sections.items():
            job[section] = {**job.get(section, {}), **changes} if isinstance(changes, dict) else changes
        return job


class JobFileTest(BadInputTest):
    def test_missing_file(self):
        self.check_fails(["train", self.work / "none.yaml", "--run-dir", self.run_dir()], "none.yaml", "[Nn]o such file|not")
        self.assertFalse(self.run_dir().exists())

    def test_file_that_is_a_folder(self):
        self.check_fails(["train", self.work, "--run-dir", self.run_dir()], re.escape(str(self.work)), "folder|directory")

    def test_empty_and_binary_files(self):
        self.train_bad("", "model")
        self.train_bad("\0\1\2\xff", r"\.yaml")

    def test_broken_yaml(self):
        self.train_bad("name: x\nmodel: {builtin: mlp\n", r"\.yaml:\d+")
        self.train_bad("name: x\n\tmodel: 1\n", r"\.yaml:2")
        self.train_bad("name: a\nname: b\n", r"\.yaml:2", "name")

    def test_unknown_key(self):
        self.train_bad(self.changed(training={"batchsize": 3}), "batchsize", "did you mean 'batch_size'")
        self.train_bad(self.changed(trainin={"steps": 2}), "trainin", "did you mean 'training'")
        self.train_bad(self.changed(model={"builtin": "mlp", "options": {"hiden": [3]}}), "hiden", "hidden")

    def test_wrong_types(self):
        self.train_bad(self.changed(training={"batch_size": "many"}), r":\d+: training\.batch_size", "whole number", "many")
        self.train_bad(self.changed(training={"steps": 1.5}), "training.steps", "whole number")
        self.train_bad(self.changed(training={"batch_size": 10**30}), "training.batch_size")
        self.train_bad(self.changed(training=[1]), "training", "map")
        self.train_bad(self.changed(platform={"uplink": "70 MB"}), "uplink", "MB/s")
        self.train_bad(self.changed(platform={"latency": "-1 s"}), "latency")
        self.train_bad(self.changed(training={"optimizer": {"kind": "sdg"}}), "sdg", "sgd")
        self.train_bad(self.changed(training={"optimizer": {"kind": "sgd", "learning_rate": float("nan")}}), "learning_rate")

    def test_bad_assignment(self):
        job = self.changed()
        self.train_bad(job, "--set", "training.bacth_size", "batch_size", options=["--set", "training.bacth_size=3"])
        self.train_bad(job, "--set", "KEY=VALUE|key=value|=", options=["--set", "training"])
        self.train_bad(job, "--set", "training.steps", "whole number", options=["--set", "training.steps=many"])
        self.train_bad(job, "--set", options=["--set", "name.x=3"])

    def test_cuts(self):
        self.train_bad(self.changed(plan={"cuts": [9]}), r"\.yaml:\d+: plan", "cut 9 is out of range", "here 1 to 5")
        self.train_bad(self.changed(plan={"cuts": [3, 2]}), r":\d+: plan\.cuts", "increasing")
        self.train_bad(self.changed(plan={"stages": 9}), ":\\d+: plan", "9", "layers")

    def test_replicas_that_do_not_fit_the_batch(self):
        self.train_bad(self.changed(plan={"replicas": 7}), "replicas", "7 replicas", "6 micro-batches", "lower")

    def test_plan_files(self):
        self.train_bad(self.changed(plan="none.json"), "none.json")
        (self.work / "plan.json").write_text('{"stages": 3}')
        self.train_bad(self.changed(plan=str(self.work / "plan.json")), "plan.json")

    def test_platform_and_store(self):
        self.train_bad(self.changed(platform={"kind": "aws-lamda"}), "aws-lamda", "local")
        self.train_bad(self.changed(platform="moon"), "moon", "local")
        self.train_bad(self.changed(store="s3://bucket/x"), "s3")

    def test_memory_option_too_small_for_the_estimate(self):
        self.train_bad(self.changed(plan={"memory_mb": 150}), "150 MB", r"needs about \d+ MB", "plan.memory_mb")
        self.train_bad(self.changed(plan={"memory_mb": 64}), "64 MB", "128 to 10240")
        self.train_bad(self.changed(plan={"memory_mb": [1769, 1769, 1769]}), "3 values for 1 stages")

    def test_run_directory_of_another_run(self):
        taken = self.run_dir("-taken")
        taken.mkdir(parents=True)
        (taken / "metrics.jsonl").write_text("precious\n")
        path = write_job(self.work / "taken.yaml", self.changed())
        self.check_fails(["train", path, "--run-dir", taken], "another run", "--overwrite")
        self.assertEqual((taken / "metrics.jsonl").read_text(), "precious\n")

    def test_run_directory_that_cannot_be_made(self):
        path = write_job(self.work / "unmade.yaml", self.changed())
        self.check_fails(["train", path, "--run-dir", path / "below"], re.escape(str(path / "below")), "[Nn]ot a directory")
        self.check_fails(["train", path, "--run-dir", "/proc/none/run"], "/proc/none/run")

    def test_store_not_writable(self):
        path = self.work / "file"
        path.write_text("a regular file\n")
        self.train_bad(self.changed(store=str(path)), re.escape(str(path)))
        self.train_bad(self.changed(store=str(path / "below")), re.escape(str(path / "below")))
        self.train_bad(self.changed(store="/proc/none"), "/proc/none")


class ModelTest(BadInputTest):
    def archive(self, name="archive"):
        folder = self.work / f"{self.case}-{name}"
        result = funcpipe("model", "write", "mlp", "--options", json.dumps(MLP["options"]), "-o", folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        return folder

    def train_archive(self, folder, *expected):
        self.train_bad(self.changed(model={"archive": str(folder)}) | {"model": {"archive": str(folder)}}, *expected)

    def change_manifest(self, folder, change):
        path = folder / "manifest.json"
        manifest = json.loads(path.read_text())
        change(manifest)
        path.write_text(json.dumps(manifest))

    def test_no_archive(self):
        self.train_archive(self.work / "none", "no model archive", "none")
        self.train_archive(self.work / "train", "not a model archive", "manifest.json")
        self.train_bad(self.changed(model={"builtin": "gpt9"}) | {"model": {"builtin": "gpt9"}}, "gpt9", "mlp", "lenet")
        self.check_fails(["model", "inspect", "gpt9"], "gpt9", "lenet")

    def test_missing_layer_file(self):
        folder = self.archive()
        (folder / "layer_001.pt").unlink()
        self.train_archive(folder, "layer_001.pt", "missing", "layer 1")

    def test_damaged_layer_file(self):
        folder = self.archive()
        path = folder / "layer_001.pt"
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        self.train_archive(folder, "layer 1", "layer_001.pt|Linear")
        path.write_bytes(b"not TorchScript")
        self.train_archive(folder, "layer 1", "layer_001.pt|Linear")
        path.write_bytes(b"")
        self.train_archive(folder, "layer_001.pt", "empty")

    def test_broken_manifest(self):
        folder = self.archive()
        (folder / "manifest.json").write_text('{"funcpipe_model": 1, "layers": [')
        self.train_archive(folder, "manifest.json")
        (folder / "manifest.json").write_text('{"funcpipe_model": 99}')
        self.train_archive(folder, "manifest.json")

    def test_layer_file_outside_of_the_archive(self):
        folder = self.archive()
        self.change_manifest(folder, lambda m: m["layers"][1].update(file="../../etc/passwd"))
        self.train_archive(folder, "manifest.json", "file")

    def test_shapes_that_do_not_chain(self):
        folder = self.archive()
        shutil.copy(folder / "layer_005.pt", folder / "layer_003.pt")  # 12 -> 4 instead of 16 -> 12
        self.train_archive(folder, "layer 3", "16", "12")

    def test_manifest_that_is_wrong(self):
        folder = self.archive()
        self.change_manifest(folder, lambda m: m["layers"][1]["outputs"][0].update(shape=[17]))
        self.train_archive(folder, "layer 1", "17", "16")


class DataTest(BadInputTest):
    def test_no_dataset(self):
        self.train_bad(self.changed(data={"train": str(self.work / "none")}), "data.train", "none")
        (self.work / "empty").mkdir()
        self.train_bad(self.changed(data={"test": str(self.work / "empty")}), "data.test", "empty", "index.json|dataset")
        self.check_fails(["data", "inspect", self.work / "none"], "none")
        self.assertFalse((self.work / "none").exists())

    def test_broken_index(self):
        folder = self.work / "broken-index"
        shutil.copytree(self.work / "train", folder)
        (folder / "index.json").write_text('{"records": ')
        self.train_bad(self.changed(data={"train": str(folder)}), "data.train", "index.json")

    def test_damaged_shard(self):
        folder = self.work / "damaged"
        shutil.copytree(self.work / "train", folder)
        shard = next(folder.glob("shard-*"))
        data = bytearray(shard.read_bytes())
        data[-1] ^= 1
        shard.write_bytes(data)
        self.check_fails(["data", "inspect", folder, "--verify"], shard.name, "checksum|damaged")
        self.train_bad(self.changed(data={"train": str(folder)}), "worker 0.0", shard.name, "checksum|damaged", started=True)
        shard.unlink()
        self.train_bad(self.changed(data={"train": str(folder)}), shard.name, started=True, options=["--overwrite"])

    def test_shapes_that_differ(self):
        import_pair(write_images(self.work / "other-files", 20, 3, shape=(1, 8, 8)), self.work / "other", "--classes", "4")
        self.train_bad(self.changed(data={"train": str(self.work / "other")}), "1 x 8 x 8|1, 8, 8", "1 x 12 x 12|1, 12, 12")
        self.train_bad(self.changed(data={"test": str(self.work / "other")}), "data.test")

    def test_channels_of_normalize(self):
        self.train_bad(self.changed(data={"normalize": {"mean": [0.5, 0.5], "std": [1, 1]}}), "normalize|mean", "channel")

    def test_more_classes_than_outputs(self):
        files = write_images(self.work / "many-files", 20, 3, classes=9)
        import_pair(files, self.work / "many", "--classes", "9")
        self.train_bad(self.changed(data={"train": str(self.work / "many")}), "9 classes", "4 outputs")

    def test_targets_for_the_loss(self):
        files = write_images(self.work / "real-files", 20, 3)
        np.save(files / "targets.npy", np.zeros((20, 4), np.float32))
        self.assertEqual(import_pair(files, self.work / "real").returncode, 0)
        self.train_bad(self.changed(data={"train": str(self.work / "real")}), "cross_entropy", "float32")
        np.save(files / "targets.npy", np.zeros((20, 3), np.float32))
        self.assertEqual(import_pair(files, self.work / "real3").returncode, 0)
        job = self.changed(data={"train": str(self.work / "real3"), "test": str(self.work / "real3")}, training={"loss": "mse"})
        self.train_bad(job, "3", "4")

    def test_import_of_bad_files(self):
        output = self.work / "imported"
        files = write_images(self.work / "import-files", 20, 3)
        self.check_fails(["data", "import", "pair", "--inputs", files / "none.npy", "--targets", files / "targets.npy", "-o", output], "none.npy")
        result = import_pair(files, output, "--classes", "2")
        self.check_error(result.returncode, result.stderr, "label", "classes|2")
        inputs = np.load(files / "inputs.npy")
        np.save(files / "inputs.npy", inputs[:-1])
        result = import_pair(files, output)
        self.check_error(result.returncode, result.stderr, "19", "20")
        whole = (files / "inputs.npy").read_bytes()
        (files / "inputs.npy").write_bytes(whole[:-5])
        result = import_pair(files, output)
        self.check_error(result.returncode, result.stderr, "inputs.npy")
        self.assertFalse(output.exists() and any(output.iterdir()), "a rejected import leaves something")

    def test_truncated_idx(self):
        folder = self.work / "idx"
        folder.mkdir()
        for part in ("train", "t10k"):
            (folder / f"{part}-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 0x803, 10, 4, 4) + bytes(160))
            (folder / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, 10) + bytes(10))
        path = folder / "t10k-images-idx3-ubyte"
        output = self.work / "idx-out"
        for size, reason in ((100, "truncated|bytes"), (2, "IDX|truncated|short"), (0, "empty|IDX|truncated")):
            path.write_bytes(path.read_bytes()[:size])
            self.check_fails(["data", "import", "mnist", folder, "-o", output], path.name, reason)
        path.unlink()
        self.check_fails(["data", "import", "mnist", folder, "-o", output], "there is no t10k-images-idx3-ubyte")
        self.assertFalse(output.exists() and any(output.iterdir()), "a rejected import leaves something")
        self.check_fails(["data", "import", "mnist", self.work / "none", "-o", output], "none")

    def test_labels_out_of_range(self):
        files = write_images(self.work / "negative-files", 20, 3)
        np.save(files / "targets.npy", np.full(20, -1))
        result = import_pair(files, self.work / "negative")
        self.check_error(result.returncode, result.stderr, "-1")


class RunTest(BadInputTest):
    """What goes wrong when a run is under way."""

    def start(self, job, *options):
        path = write_job(self.work / f"{self.case}.yaml", job)
        return Run("train", path, "--run-dir", self.run_dir(), *options)

    def check_run_fails(self, run, *expected, lines=1):
        code = run.wait(QUICK)
        self.check_error(code, run.stderr(), *expected, lines=lines)
        self.assertTrue((self.run_dir() / "cost.json").exists())
        self.assertFalse((self.run_dir() / "store").exists())
        self.assertFalse((self.run_dir() / "model.safetensors").exists())

    def endless(self, plan=None, **platform):
        return self.job(MLP, ENDLESS, plan or {"cuts": [3]}, {"latency": "20 ms", **platform})

    def test_loss_that_is_not_finite(self):
        job = self.job(MLP, {"steps": 50, "optimizer": {"kind": "sgd", "learning_rate": 1e30}})
        with self.start(job) as run:
            self.check_run_fails(run, r"loss is -?(nan|inf)", r"step \d+", "learning rate")

    def test_out_of_memory(self):
        class Greedy(torch.nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return (x.unsqueeze(-1) * torch.ones(60000)).mean(-1)

        archive = self.work / "greedy"
        import sys
        sys.path.insert(0, str(harness.SOURCE / "python"))
        import funcpipe as exporter
        exporter.export(torch.nn.Sequential(torch.nn.Flatten(), Greedy(), torch.nn.Linear(144, 4)), archive, torch.zeros(2, 1, 12, 12))
        job = self.job({"archive": str(archive)}, {"steps": 5, "micro_batch_size": 16}, {"memory_mb": 400})
        with self.start(job) as run:
            self.check_run_fails(run, "out of memory", "400 MB", r"used \d+ MB", "plan.memory_mb")

    def test_time_limit_too_short_for_one_step(self):
        job = self.job(MLP, {"steps": 5}, {"cuts": [3]}, {"time_limit": "2 s", "latency": "900 ms"})
        with self.start(job) as run:
            self.check_run_fails(run, "time limit|time_limit")

    def test_killed_worker(self):
        with self.start(self.endless()) as run:
            run.wait_for_stderr("step 1/")
            victim = run.children("worker")[0]
            os.kill(victim, signal.SIGKILL)
            self.check_run_fails(run, r"worker [01]\.0", "signal 9|SIGKILL|killed", lines=0)
            self.assertLess(run.seconds, 10)

    def test_killed_host(self):
        with self.start(self.endless()) as run:
            run.wait_for_stderr("step 1/")
            os.kill(run.children("host")[0], signal.SIGKILL)
            self.check_run_fails(run, "platform does not answer|host")
            self.assertLess(run.seconds, 10)

    @unittest.skipUnless(os.geteuid() == 0, "only root may mount")
    def test_full_disk(self):
        disk = self.work / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", disk], check=True)
        try:
            big = {"builtin": "mlp", "options": {**MLP["options"], "hidden": [400]}}
            self.train_bad(self.job(big, {"steps": 5}, store=str(disk / "store")), "No space left", re.escape(str(disk)), started=True)
            self.case = "disk/run"
            path = write_job(self.work / "full.yaml", self.job(big, {"steps": 5}))
            self.check_fails(["train", path, "--run-dir", disk / "run"], "No space left", re.escape(str(disk)))
        finally:
            subprocess.run(["umount", "-l", disk], check=True)


class UsageTest(unittest.TestCase):
    COMMANDS = [[], ["train"], ["model"], ["model", "inspect"], ["model", "write"], ["model", "list"], ["data"], ["data", "import"],
                ["data", "import", "mnist"], ["data", "import", "pair"], ["data", "inspect"], ["host"], ["worker"], ["doctor"]]

    def test_help(self):
        for command in self.COMMANDS:
            result = funcpipe(*command, "--help", timeout=QUICK)
            self.assertEqual(result.returncode, 0, command)
            self.assertIn("Usage", result.stdout)
            self.assertEqual(result.stderr, "")

    def test_usage_errors(self):
        for arguments in ([], ["trian"], ["train"], ["train", "a", "b"], ["train", "--bogus"], ["train", "job.yaml", "--set"],
                          ["data"], ["data", "import", "pair", "--inputs", "x"], ["host", "--port", "70000"],
                          ["host", "--memory", "x"], ["model", "inspect"], ["data", "import", "mnist", "x"]):
            result = funcpipe(*arguments, timeout=QUICK)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertEqual(result.stdout, "", arguments)
            self.assertRegex(result.stderr, "--help", arguments)

    def test_version(self):
        self.assertRegex(funcpipe("--version").stdout, r"^funcpipe \d+\.\d+")

    def test_worker_by_hand(self):
        result = funcpipe("worker", timeout=QUICK)
        self.assertEqual(result.returncode, 1)
        self.assertIn("not by hand", result.stderr)

    def test_host(self):
        for arguments, expected in ((["--memory", "5"], "5"), (["--config", "/none.yaml"], "/none.yaml"),
                                    (["--memory", "512", "--memory", "512"], "funcpipe-512")):
            result = funcpipe("host", *arguments, timeout=QUICK)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn(expected, result.stderr)

    def test_doctor(self):
        result = funcpipe("doctor", timeout=60)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        for expected in ("CPU", "kernel", r"GFLOP/s", "cgroup", r"libtorch +\d+\.\d+"):
            self.assertRegex(result.stdout, expected)


if __name__ == "__main__":
    harness.main()
