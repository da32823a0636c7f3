"""Everything a user can get wrong, and what machines do to runs: each ends soon, with one clear error, and leaves nothing."""

import itertools
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import unittest
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch

import harness

sys.path.insert(0, str(harness.SOURCE / "python"))
from funcpipe import export
from harness import WorkspaceTest, funcpipe, import_pair, write_images, write_job
from process_tree import Run

MLP = {"builtin": "mlp", "options": {"inputs": [1, 12, 12], "hidden": [16, 12], "classes": 4}}
ENDLESS = {"steps": 1000000, "evaluate_every_epochs": 0}
QUICK = 20  # seconds any failure may take

# Traces of exceptions, libraries and programmer's errors, none of which tells a user anything.
NOT_FOR_USERS = re.compile(
    r"terminate called|what\(\)|std::|c10::|nlohmann|yaml-cpp|YAML::|\[json\.|internal error|Assert|Exception|"
    r"frame #|filesystem error|basic_string|__")


class BadInputTest(WorkspaceTest):
    numbers = itertools.count()

    def setUp(self):
        self.case = self.id().rpartition(".")[2]
        self.run_dir = self.work / "bad-runs" / self.case

    def check_error(self, code, stderr, *expected, lines=1):
        """One line of error that says all that is expected, and nothing of the program's insides."""
        self.assertEqual(code, 1, stderr)
        self.assertIsNone(NOT_FOR_USERS.search(stderr), stderr)
        self.assertIn("funcpipe: ", stderr)
        error = stderr[stderr.index("funcpipe: "):]
        if lines:
            self.assertEqual(len(error.splitlines()), lines, stderr)
        for text in expected:
            self.assertRegex(error, text)

    def check_fails(self, arguments, *expected):
        result = funcpipe(*arguments, timeout=QUICK)
        self.check_error(result.returncode, result.stderr, *expected)

    def check_import_fails(self, files, output, options, *expected):
        result = import_pair(files, output, *options)
        self.check_error(result.returncode, result.stderr, *expected)

    def reject(self, job, *expected, options=()):
        """A job (a dict, or the text of its file) that fails before it starts, which leaves no run directory."""
        name = f"{self.case}-{next(self.numbers)}"
        path, run_dir = self.work / f"{name}.yaml", self.work / "bad-runs" / name
        if isinstance(job, str):
            path.write_text(job)
        else:
            write_job(path, job)
        self.check_fails(["train", path, "--run-dir", run_dir, *options], *expected)
        self.assertFalse(run_dir.exists(), f"a run directory is left: {expected}")

    def reject_each(self, *cases):
        """Of (job, expected texts ...), two at a time: most of what they take is the start of a process."""
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda case: self.reject(*case), cases))

    def reject_assignments(self, *cases):
        """Of (assignment, expected texts ...): --set in a job that is right otherwise."""
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda case: self.reject(self.changed(), *case[1:], options=["--set", case[0]]), cases))

    def changed(self, **sections):
        """A job that is right but for these sections: a dict changes keys of a section, anything else replaces it."""
        job = self.job(MLP, {"steps": 2})
        for section, changes in sections.items():
            job[section] = {**job.get(section, {}), **changes} if isinstance(changes, dict) else changes
        return job

    def start(self, job, *options):
        return Run("train", write_job(self.work / f"{self.case}.yaml", job), "--run-dir", self.run_dir, *options)

    def check_run_fails(self, run, *expected, lines=1):
        """A run that fails under way: it keeps its metrics and cost, and has no result."""
        self.check_error(run.wait(QUICK), run.stderr(), *expected, lines=lines)
        self.assertTrue((self.run_dir / "metrics.jsonl").exists())
        self.assertTrue((self.run_dir / "cost.json").exists())
        self.assertFalse((self.run_dir / "store").exists(), "the run's own store is left")
        self.assertFalse((self.run_dir / "model.safetensors").exists())


class JobFileTest(BadInputTest):
    def test_files(self):
        self.check_fails(["train", self.work / "none.yaml", "--run-dir", self.run_dir], "none.yaml: No such file")
        self.check_fails(["train", self.work, "--run-dir", self.run_dir], re.escape(str(self.work)), "Is a directory")
        self.assertFalse(self.run_dir.exists())
        self.reject_each(
            ("", "key 'model' is missing"),
            ("\0\1\2\xff", r"\.yaml:1: expected a map of keys"),
            ("name: x\nmodel: {builtin: mlp\n", r"\.yaml:\d+: not valid YAML"),
            ("name: x\n\tmodel: 1\n", r"\.yaml:2: not valid YAML"),
            ("name: a\nname: b\n", r"\.yaml:2: ", "name"),
            ("a: " + "[" * 100000, r"\.yaml:1: not valid YAML"),
        )

    def test_keys(self):
        self.reject_each(
            (self.changed(training={"batchsize": 3}), r"\.yaml:\d+: training\.batchsize", "did you mean 'batch_size'"),
            (self.changed(trainin={"steps": 2}), "trainin", "did you mean 'training'"),
            (self.changed(model={"options": {"hiden": [3]}}), "hiden", "did you mean 'hidden'"),
        )
        self.reject_assignments(("training.bacth_size=3", "--set training.bacth_size=3", "did you mean 'batch_size'"))

    def test_types_and_ranges(self):
        self.reject_each((self.changed(training={"batch_size": "many"}), r"\.yaml:\d+: training\.batch_size: expected a whole number, got 'many'"))
        self.reject_assignments(
            ("training.steps=1.5", "--set training.steps=1.5", "whole number"),
            ("training.batch_size=1" + 30 * "0", "training.batch_size"),
            ("training=[1]", "training", "map"),
            ("training.optimizer={kind: sdg}", "'sdg' is not known", "sgd, adam"),
            ("training.optimizer={kind: sgd, learning_rate: .nan}", "learning_rate"),
            ("platform.uplink=70 MB", "platform.uplink", "write for example '70 MB/s'"),
            ("platform.latency=-1 s", "platform.latency"),
            ("platform.time_dilation=1e9", "time_dilation"),
            ("training", "'training' is not|KEY=VALUE|="),
            ("name.x=3", "name"),
            ("name=../x", "letters, digits"),
        )

    def test_plan(self):
        plan = self.work / "broken-plan.json"
        plan.write_text('{"stages": 3}')
        self.reject_each((self.changed(plan={"cuts": [9]}), r"\.yaml:\d+: plan: cut 9 is out of range", "here 1 to 5"))
        self.reject_assignments(
            ("plan.cuts=[3, 2]", "plan.cuts", "increasing order"),
            ("plan.stages=9", "plan", "9", "layers"),
            ("plan.replicas=7", "7 replicas do not fit a mini-batch of 6 micro-batches", "lower replicas"),
            ("plan.memory_mb=150", "150 MB but needs about [0-9]+ MB", "raise plan.memory_mb"),
            ("plan.memory_mb=64", "64 MB", "128 to 10240"),
            ("plan.memory_mb=[1769, 1769]", "2 values for 1 stages"),
            ("plan=./none.json", "none.json"),
            (f"plan={plan}", "broken-plan.json:1"),
            ("training.batch_size=2147483647", "plan", "raise plan.memory_mb"),
        )

    def test_platform_and_store(self):
        file = self.work / "file"
        file.write_text("a regular file\n")
        self.reject_assignments(
            ("platform=moon", "platform 'moon' is not built in; choose local"),
            ("platform={kind: aws-lamda}", "aws-lamda", "choose local"),
            ("platform={max_concurrency: 0}", "max_concurrency", "at least 1"),
            ("store=s3://bucket/x", "s3://bucket/x", "known are"),
            ("store='memory:'", "one process", "give a folder"),
            (f"store={file}", f"store {file} is not writable"),
            (f"store={file}/below", f"store {file}/below is not writable"),
            ("store=/proc/none", "/proc/none is not writable"),
        )
        self.reject_each((self.changed(plan={"stages": 2}, platform={"max_concurrency": 1}), "2 functions at a time", "max_concurrency is 1"))

    def test_run_directory(self):
        path = write_job(self.work / "run-directory.yaml", self.changed())
        self.run_dir.mkdir(parents=True)
        (self.run_dir / "metrics.jsonl").write_text("precious\n")
        self.check_fails(["train", path, "--run-dir", self.run_dir], "another run", "--overwrite")
        self.assertEqual((self.run_dir / "metrics.jsonl").read_text(), "precious\n")
        self.check_fails(["train", path, "--run-dir", path / "below"], f"cannot make the run directory {path}/below: Not a directory")
        self.check_fails(["train", path, "--run-dir", "/proc/none/run"], "/proc/none/run")


class ModelTest(BadInputTest):
    def archive(self, name="archive"):
        folder = self.work / f"{self.case}-{name}"
        result = funcpipe("model", "write", "mlp", "--options", json.dumps(MLP["options"]), "-o", folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        return folder

    def reject_archive(self, folder, *expected):
        self.reject(self.changed() | {"model": {"archive": str(folder)}}, *expected)

    def change_manifest(self, folder, change):
        path = folder / "manifest.json"
        manifest = json.loads(path.read_text())
        change(manifest)
        path.write_text(json.dumps(manifest))

    def test_no_archive(self):
        self.reject_archive(self.work / "none", "no model archive", "none")
        self.reject_archive(self.work / "train", "not a model archive", "manifest.json")
        self.reject_assignments(("model={builtin: gpt9}", "gpt9", "mlp, lenet"))
        self.check_fails(["model", "inspect", "gpt9"], "gpt9", "lenet")

    def test_model_that_no_machine_can_hold(self):
        self.reject_assignments(
            ("model.options.hidden=[1000000000000000]", "'mlp': can't allocate memory"),
            ("model.options.hidden=[9223372036854775807]", "'mlp'", "overflow"),
        )

    def test_archive_that_cannot_be_written(self):
        file = self.work / "no-folder"
        file.write_text("a regular file\n")
        self.check_fails(["model", "write", "mlp", "-o", file / "below"], re.escape(str(file)), "Not a directory")
        self.check_fails(["model", "write", "mlp", "-o", self.work / "train"], "is not a model archive: it is left as it is")

    def test_missing_layer_file(self):
        folder = self.archive()
        (folder / "layer_001.pt").unlink()
        self.reject_archive(folder, "layer_001.pt", "missing", "layer 1")

    def test_damaged_layer_file(self):
        folder = self.archive()
        path = folder / "layer_001.pt"
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        self.reject_archive(folder, "layer 1", "layer_001.pt|Linear")
        path.write_bytes(b"not TorchScript")
        self.reject_archive(folder, "layer 1", "layer_001.pt|Linear")
        path.write_bytes(b"")
        self.reject_archive(folder, "layer_001.pt", "empty")

    def test_broken_manifest(self):
        folder = self.archive()
        (folder / "manifest.json").write_text('{"funcpipe_model": 1, "layers": [')
        self.reject_archive(folder, "manifest.json")
        (folder / "manifest.json").write_text('{"funcpipe_model": 99}')
        self.reject_archive(folder, "manifest.json")

    def test_layer_file_outside_of_the_archive(self):
        folder = self.archive()
        self.change_manifest(folder, lambda m: m["layers"][1].update(file="../../etc/passwd"))
        self.reject_archive(folder, "manifest.json", "file")

    def test_shapes_that_do_not_chain(self):
        folder = self.archive()
        shutil.copy(folder / "layer_005.pt", folder / "layer_003.pt")  # 12 -> 4 instead of 16 -> 12
        self.reject_archive(folder, "layer 3", "16", "12")

    def test_manifest_that_is_wrong(self):
        folder = self.archive()
        self.change_manifest(folder, lambda m: m["layers"][1]["outputs"][0].update(shape=[17]))
        self.reject_archive(folder, "layer 1", "17", "16")


class DataTest(BadInputTest):
    def test_no_dataset(self):
        self.reject(self.changed(data={"train": str(self.work / "none")}), "data: train", "none")
        (self.work / "empty").mkdir()
        self.reject(self.changed(data={"test": str(self.work / "empty")}), "data: test", "empty", "index.json|dataset")
        self.check_fails(["data", "inspect", self.work / "none"], "none")
        self.assertFalse((self.work / "none").exists())

    def test_broken_index(self):
        folder = self.work / "broken-index"
        shutil.copytree(self.work / "train", folder)
        (folder / "index.json").write_text('{"records": ')
        self.reject(self.changed(data={"train": str(folder)}), "data: train", "index.json")

    def test_damaged_shard(self):
        """Found by the worker that reads it: damaged records are never trained on."""
        folder = self.work / "damaged"
        shutil.copytree(self.work / "train", folder)
        shard = next(folder.glob("shard-*"))
        data = bytearray(shard.read_bytes())
        data[-1] ^= 1
        shard.write_bytes(data)
        self.check_fails(["data", "inspect", folder, "--verify"], shard.name, "checksum|damaged")
        with self.start(self.changed(data={"train": str(folder)})) as run:
            self.check_run_fails(run, "worker 0.0", shard.name, "checksum|damaged")
        self.assertEqual((self.run_dir / "metrics.jsonl").read_text(), "")
        shard.unlink()
        with self.start(self.changed(data={"train": str(folder)}), "--overwrite") as run:
            self.check_run_fails(run, "worker 0.0", shard.name)

    def test_shapes_that_differ(self):
        import_pair(write_images(self.work / "other-files", 20, 3, shape=(1, 8, 8)), self.work / "other", "--classes", "4")
        self.reject(self.changed(data={"train": str(self.work / "other")}), "1 x 8 x 8|1, 8, 8", "1 x 12 x 12|1, 12, 12")
        self.reject(self.changed(data={"test": str(self.work / "other")}), "data: test")

    def test_channels_of_normalize(self):
        self.reject(self.changed(data={"normalize": {"mean": [0.5, 0.5], "std": [1, 1]}}), "normalize|mean", "channel")

    def test_more_classes_than_outputs(self):
        files = write_images(self.work / "many-files", 20, 3, classes=9)
        import_pair(files, self.work / "many", "--classes", "9")
        self.reject(self.changed(data={"train": str(self.work / "many")}), "9 classes", "4 outputs")

    def test_targets_for_the_loss(self):
        files = write_images(self.work / "real-files", 20, 3)
        np.save(files / "targets.npy", np.zeros((20, 4), np.float32))
        self.assertEqual(import_pair(files, self.work / "real").returncode, 0)
        self.reject(self.changed(data={"train": str(self.work / "real")}), "cross_entropy", "float32")
        np.save(files / "targets.npy", np.zeros((20, 3), np.float32))
        self.assertEqual(import_pair(files, self.work / "real3").returncode, 0)
        job = self.changed(data={"train": str(self.work / "real3"), "test": str(self.work / "real3")}, training={"loss": "mse"})
        self.reject(job, "3", "4")

    def test_import_of_bad_files(self):
        output = self.work / "imported"
        files = write_images(self.work / "import-files", 20, 3)
        self.check_fails(["data", "import", "pair", "--inputs", files / "none.npy", "--targets", files / "targets.npy", "-o", output], "none.npy")
        self.check_import_fails(files, output, ["--classes", "2"], "label 3", "expected 0 to 1")
        inputs = np.load(files / "inputs.npy")
        np.save(files / "inputs.npy", inputs[:-1])
        self.check_import_fails(files, output, [], "19", "20")
        whole = (files / "inputs.npy").read_bytes()
        (files / "inputs.npy").write_bytes(whole[:-5])
        self.check_import_fails(files, output, [], "inputs.npy")
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
        self.check_import_fails(files, self.work / "negative", [], "label -1")


class RunTest(BadInputTest):
    """What goes wrong when a run is under way."""

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
        export(torch.nn.Sequential(torch.nn.Flatten(), Greedy(), torch.nn.Linear(144, 4)), archive, torch.zeros(2, 1, 12, 12))
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
        self.addCleanup(subprocess.run, ["umount", "-l", disk], check=True)
        job = self.job({"builtin": "mlp", "options": {**MLP["options"], "hidden": [400]}}, {"steps": 5})
        full = ("(?i)no space left", re.escape(str(disk)))
        with self.start({**job, "store": str(disk / "store")}) as run:
            self.check_run_fails(run, *full)
        shutil.rmtree(disk / "store")
        self.run_dir = disk / "run-with-store"
        with self.start(job) as run:
            self.check_run_fails(run, *full)
        self.run_dir = disk / "run"
        with self.start({**job, "store": str(self.work / "store-of-full")}) as run:
            self.check_run_fails(run, *full)
        self.assertFalse((self.run_dir / "model.pt").exists())


class UsageTest(unittest.TestCase):
    COMMANDS = [[], ["train"], ["model"], ["model", "inspect"], ["model", "write"], ["model", "list"], ["data"], ["data", "import"],
                ["data", "import", "mnist"], ["data", "import", "pair"], ["data", "inspect"], ["host"], ["worker"], ["doctor"]]

    def results(self, commands):
        """(arguments, result) of each, two at a time."""
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(lambda arguments: (arguments, funcpipe(*arguments, timeout=QUICK)), commands))

    def test_help(self):
        for command, result in self.results([*command, "--help"] for command in self.COMMANDS):
            self.assertEqual(result.returncode, 0, command)
            self.assertIn("Usage", result.stdout)
            self.assertEqual(result.stderr, "")

    def test_usage_errors(self):
        wrong = [[], ["trian"], ["train"], ["train", "a", "b"], ["train", "--bogus"], ["train", "job.yaml", "--set"], ["data"],
                 ["data", "import", "pair", "--inputs", "x"], ["data", "import", "mnist", "x"],
                 ["data", "import", "mnist", "x", "-o", "y", "--classes", "-1"], ["host", "--port", "70000"],
                 ["host", "--memory", "x"], ["host", "--memory", "64"], ["model", "inspect"]]
        for arguments, result in self.results(wrong):
            self.assertEqual(result.returncode, 2, arguments)
            self.assertEqual(result.stdout, "", arguments)
            self.assertRegex(result.stderr, "--help", arguments)

    def test_version(self):
        self.assertRegex(funcpipe("--version").stdout, r"^funcpipe \d+\.\d+")

    def test_worker_by_hand(self):
        result = funcpipe("worker", timeout=QUICK)
        self.assertEqual(result.returncode, 1)
        self.assertIn("not by hand", result.stderr)

    def test_host_without_configuration(self):
        result = funcpipe("host", "--config", "/none.yaml", timeout=QUICK)
        self.assertEqual(result.returncode, 1)
        self.assertIn("/none.yaml", result.stderr)

    def test_doctor(self):
        result = funcpipe("doctor", timeout=60)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        for expected in ("CPU", "kernel", r"GFLOP/s", "cgroup", r"libtorch +\d+\.\d+"):
            self.assertRegex(result.stdout, expected)


if __name__ == "__main__":
    harness.main()
