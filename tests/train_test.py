"""Training end to end on the local platform, against the plain PyTorch loop."""

import json
import resource
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

import harness
from harness import WorkspaceTest, evaluations_of, funcpipe, is_sanitized, python, slowness, steps_of

sys.path.insert(0, str(harness.SOURCE / "python"))
from funcpipe.dataset import Dataset
from funcpipe.model import load, load_weights
from funcpipe.weights import load_safetensors

MLP = {"builtin": "mlp", "options": {"inputs": [1, 12, 12], "hidden": [16, 12], "classes": 4, "dropout": 0.2}}
LENET = {"builtin": "lenet", "options": {"image": [1, 12, 12], "channels": [3, 4], "kernel": 3, "hidden": [8], "classes": 4}}
RESNET = {"builtin": "resnet-small",
          "options": {"image": [1, 12, 12], "channels": [4, 8], "blocks": 1, "classes": 4, "skip": "tuple"}}
MODELS = {"mlp": MLP, "lenet": LENET, "resnet": RESNET}

SGD = {"optimizer": {"kind": "sgd", "learning_rate": 0.05, "momentum": 0.9, "weight_decay": 0.0005}}
NESTEROV = {"optimizer": {"kind": "sgd", "learning_rate": 0.02, "momentum": 0.9, "nesterov": True}, "clip_norm": 0.5,
            "schedule": {"kind": "cosine", "warmup_steps": 10}}
ADAM = {"optimizer": {"kind": "adam", "learning_rate": 0.001}}
ADAMW = {"optimizer": {"kind": "adamw", "learning_rate": 0.002, "weight_decay": 0.05},
         "schedule": {"kind": "step", "every_steps": 30, "factor": 0.5}}
TRAININGS = {"sgd": SGD, "nesterov": NESTEROV, "adam": ADAM, "adamw": ADAMW}

# Stages x replicas. 50 records in batches of 16 in micro-batches of 3: each batch ends with a micro-batch of one sample, and
# each epoch with a batch of two samples, in which some replicas have nothing to do.
SHAPES = {"1x1": ([], 1), "2x1": ([3], 1), "3x1": ([1, 4], 1), "1x2": ([], 2), "2x2": ([3], 2), "3x4": ([1, 4], 4)}
CASES = [  # model, training, shape, all-reduce
    ("mlp", "sgd", "1x1", "pipelined"),
    ("mlp", "nesterov", "3x1", "pipelined"),
    ("mlp", "adam", "2x2", "three-phase"),
    ("lenet", "adamw", "1x2", "pipelined"),
    ("lenet", "sgd", "3x4", "pipelined"),
    ("lenet", "adam", "2x1", "pipelined"),
    ("resnet", "adam", "1x1", "pipelined"),
    ("resnet", "sgd", "2x2", "pipelined"),
    ("resnet", "nesterov", "1x2", "three-phase"),
    ("resnet", "adam", "3x4", "three-phase"),
]
STEPS = 100


def reference_arguments(job, archive, steps):
    training, optimizer = job["training"], job["training"]["optimizer"]
    schedule = training.get("schedule", {"kind": "constant"})
    arguments = ["--model", archive, "--train", job["data"]["train"], "--steps", steps, "--seed", job["seed"],
                 "--batch-size", training["batch_size"], "--micro-batch-size", training["micro_batch_size"],
                 "--replicas", job["plan"].get("replicas", 1), "--optimizer", optimizer["kind"],
                 "--lr", optimizer["learning_rate"], "--momentum", optimizer.get("momentum", 0),
                 "--weight-decay", optimizer.get("weight_decay", 0), "--clip-norm", training.get("clip_norm", 0),
                 "--schedule", schedule["kind"], "--warmup-steps", schedule.get("warmup_steps", 0),
                 "--every-steps", schedule.get("every_steps", 1), "--factor", schedule.get("factor", 1),
                 "--normalize-mean", job["data"]["normalize"]["mean"], "--normalize-std", job["data"]["normalize"]["std"]]
    return arguments + (["--nesterov"] if optimizer.get("nesterov") else [])


class TrainingTest(WorkspaceTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.done = {}  # run directories by name: tests share runs

    def archive(self, name):
        folder = self.work / f"archive-{name}"
        if not folder.exists():
            model = MODELS[name]
            result = funcpipe("model", "write", model["builtin"], "--options", json.dumps(model["options"]), "--seed", 5,
                              "-o", folder)
            self.assertEqual(result.returncode, 0, result.stderr)
        return folder

    def shaped_job(self, model, training, shape, all_reduce="pipelined", **more):
        cuts, replicas = SHAPES[shape]
        plan = {"replicas": replicas, "all_reduce": all_reduce, **({"cuts": cuts} if cuts else {})}
        return self.job(MODELS[model], {"steps": STEPS, **TRAININGS[training]}, plan, **more)

    def train_all(self, jobs):
        """Trains {name: job}, two at a time, but what an earlier test trained; gives {name: run directory}."""
        missing = [name for name in jobs if name not in self.done]
        with ThreadPoolExecutor(2) as pool:
            self.done.update(zip(missing, pool.map(lambda name: self.train(name, jobs[name]), missing)))
        return {name: self.done[name] for name in jobs}

    def train_cases(self, *cases):
        return list(self.train_all({"-".join(case): self.shaped_job(*case) for case in cases}).values())

    def check_against_reference(self, name, run_dir, job, archive):
        steps = job["training"]["steps"]
        saved = self.work / f"{name}-reference.pt"
        output = python("-m", "funcpipe.reference", *reference_arguments(job, archive, steps), "--save", saved).stdout
        expected = [json.loads(line) for line in output.splitlines() if '"step"' in line]
        got = steps_of(run_dir)
        self.assertEqual([line["step"] for line in got], list(range(steps)))
        self.assertEqual(len(expected), steps)
        worst = max(abs(a["loss"] - b["loss"]) / abs(b["loss"]) for a, b in zip(got, expected))
        self.assertLess(worst, 1e-4, f"{name}: worst relative difference of a step's loss {worst}")
        for a, b in zip(got, expected):
            self.assertAlmostEqual(a["learning_rate"], b["learning_rate"], places=9)
        self.check_state(name, load_safetensors(run_dir / "model.safetensors"), torch.load(saved))

    def check_state(self, name, got, expected):
        """Weights, and what no loss of a training step tells about: batch norm's running statistics."""
        self.assertEqual(set(got), set(expected))
        for key, tensor in expected.items():
            self.assertEqual(got[key].dtype, tensor.dtype, key)
            worst = float((got[key].double() - tensor.double()).abs().max() / tensor.double().abs().max().clamp(min=1e-3))
            self.assertLess(worst, 1e-4, f"{name}: {key}")

    def test_losses_equal_the_plain_pytorch_loop(self):
        runs = self.train_cases(*CASES)
        for model in MODELS:
            self.archive(model)
        with ThreadPoolExecutor(2) as pool:
            checks = [pool.submit(self.check_against_reference, "-".join(case), run_dir, self.shaped_job(*case),
                                  self.archive(case[0])) for case, run_dir in zip(CASES, runs)]
        for case, check in zip(CASES, checks):
            with self.subTest(case="-".join(case)):
                check.result()

    def weights(self, run_dir):
        return (Path(run_dir) / "model.safetensors").read_bytes()

    def test_same_seed_same_bits(self):
        job = self.shaped_job("resnet", "sgd", "2x2")
        runs = self.train_all({"resnet-sgd-2x2-pipelined": job, "once-more": job, "other-seed": {**job, "seed": 6}})
        first, second, other = map(self.weights, runs.values())
        self.assertEqual(first, second)
        self.assertNotEqual(first, other)

    def test_neither_cuts_nor_the_all_reduce_change_bits(self):
        for one, other in (
            (("mlp", "nesterov", "1x1", "pipelined"), ("mlp", "nesterov", "3x1", "pipelined")),  # dropout and clip_norm
            (("mlp", "sgd", "1x1", "pipelined"), ("mlp", "sgd", "3x1", "pipelined")),
            (("resnet", "adam", "1x1", "pipelined"), ("resnet", "adam", "3x1", "pipelined")),  # batch norm
            (("resnet", "sgd", "2x2", "pipelined"), ("resnet", "sgd", "2x2", "three-phase")),
        ):
            with self.subTest(one=one, other=other):
                runs = self.train_cases(one, other)
                self.assertEqual(*map(self.weights, runs))

    def test_a_run_longer_than_the_time_limit_goes_on_in_new_functions(self):
        job = self.shaped_job("resnet", "adam", "2x2")
        job["training"]["steps"] = 30
        limit, latency = 8000 * slowness(), 25 * slowness()
        short = {**job, "platform": {**job["platform"], "time_limit": f"{limit} ms", "latency": f"{latency} ms"}}
        runs = self.train_all({"whole": job, "parts": short})
        self.assertEqual(self.weights(runs["whole"]), self.weights(runs["parts"]))
        self.assertEqual([line["step"] for line in steps_of(runs["parts"])], list(range(30)))
        cost = json.loads((runs["parts"] / "cost.json").read_text())
        for worker in cost["workers"]:
            self.assertGreater(worker["invocations"], 1, worker)
            self.assertLessEqual(worker["billed_ms"], worker["invocations"] * limit, worker)

    def test_time_dilation_slows_the_run_and_not_its_figures(self):
        job = self.shaped_job("mlp", "adam", "2x1")
        job["training"]["steps"] = 20
        dilated = {**job, "platform": {**job["platform"], "latency": "20 ms", "time_dilation": 2}}
        plain_dir = self.train("plain", job)
        begin = time.monotonic()
        run_dir = self.train("dilated", dilated)
        wall = time.monotonic() - begin  # with the start of the run, which is less than half of it
        self.assertEqual(self.weights(plain_dir), self.weights(run_dir))
        seconds = sum(line["seconds"] for line in steps_of(run_dir))
        self.assertTrue(wall / (4 * slowness()) < seconds <= wall / 2, f"{seconds} s reported, {wall} s real")
        for worker in json.loads((run_dir / "cost.json").read_text())["workers"]:
            self.assertTrue(seconds < worker["billed_ms"] / 1000 <= wall / 2, f"{worker}, {wall} s real")

    def test_steps_use_the_memory_of_the_steps_before(self):
        """What is freed must not go back to the kernel: page faults would cost a tenth of a step's time."""
        if is_sanitized():
            self.skipTest("the sanitizer brings its own allocator")
        wide = {"builtin": "lenet",  # its activations are larger than its weights
                "options": {"image": [1, 12, 12], "channels": [256, 4], "kernel": 3, "hidden": [8], "classes": 4}}
        faults = []
        for steps in (10, 110):
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
            self.train(f"faults-{steps}", self.job(wide, {"steps": steps, "micro_batch_size": 4, **SGD}))
            faults.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt - before)
        self.assertLess((faults[1] - faults[0]) / 100, 60, f"page faults of runs of 10 and 110 steps: {faults}")

    def test_run_directory(self):
        job = self.shaped_job("lenet", "adam", "2x2")
        job["platform"].update({"uplink": "70 MB/s", "downlink": "70 MB/s", "latency": "2 ms"})
        begin = time.monotonic()
        run_dir = self.train("directory", job, "--set", "training.steps=20")
        wall = time.monotonic() - begin
        self.check_metrics(run_dir)
        self.check_trace(json.loads((run_dir / "trace.json").read_text()), wall)
        self.check_cost(json.loads((run_dir / "cost.json").read_text()), wall)
        self.assertFalse((run_dir / "store").exists())
        again = self.work / "runs" / "again"
        result = funcpipe("train", run_dir / "job.yaml", "--run-dir", again)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.weights(run_dir), self.weights(again))
        self.assertEqual((run_dir / "plan.json").read_text(), (again / "plan.json").read_text())

    def check_metrics(self, run_dir):
        lines = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
        steps = [line for line in lines if "step" in line]
        self.assertEqual([line["step"] for line in steps], list(range(20)))
        self.assertEqual([line["epoch"] for line in steps], [i // 4 for i in range(20)])
        self.assertEqual([line["samples"] for line in steps], [16, 16, 16, 2] * 5)
        evaluations = [(i, line) for i, line in enumerate(lines) if "evaluation" in line]
        for epoch, (position, line) in enumerate(evaluations, 1):  # behind the epoch's last step
            self.assertEqual((line["steps"], position), (4 * epoch, 5 * epoch - 1))
            self.assertEqual(line["samples"], 21)
            self.assertAlmostEqual(line["accuracy"], line["correct"] / 21)
        self.assertEqual(len(evaluations), 5)

    def check_trace(self, events, wall):
        names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
        self.assertEqual(sorted(names.values()), ["worker 0.0", "worker 0.1", "worker 1.0", "worker 1.1"])
        spans = [event for event in events if event["ph"] == "X"]
        lanes = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
        self.assertEqual(lanes, {(pid, tid): lane for pid in names for tid, lane in
                                 enumerate(("compute", "uplink", "downlink"))})
        self.assertEqual({(event["pid"], event["tid"]) for event in spans}, set(lanes))
        for event in spans:
            self.assertGreaterEqual(min(event["ts"], event["dur"]), 0, event)
            self.assertLessEqual(event["ts"] + event["dur"], wall * 1e6, event)
        steps = {(e["pid"], e["args"]["step"]) for e in spans if e["tid"] == 0 and e.get("args", {}).get("step") is not None}
        self.assertLessEqual({(pid, step) for pid in names for step in range(20)}, steps)
        for row in {(event["pid"], event["tid"]) for event in spans}:
            lane = sorted((e["ts"], e["dur"]) for e in spans if (e["pid"], e["tid"]) == row and "step" in e.get("args", {}))
            for (begin, duration), (following, _) in zip(lane, lane[1:]):
                self.assertLessEqual(begin + duration, following + 1, "tasks of one lane overlap")

    def check_cost(self, cost, wall):
        workers, client = cost["workers"], cost["client"]
        self.assertEqual([worker["worker"] for worker in workers], ["0.0", "0.1", "1.0", "1.1"])
        for figure, total in cost["total"].items():
            parts = [part["cost"][figure] for part in [*workers, client]]
            self.assertAlmostEqual(total, sum(parts), places=12, msg=figure)
        for figure, total in cost["store"].items():
            self.assertEqual(total, sum(part["store"][figure] for part in [*workers, client]), figure)
        for worker in workers:
            self.assertEqual((worker["invocations"], worker["cold_starts"], worker["memory_mb"]), (1, 1, 1769))
            self.assertTrue(0 < worker["compute_lane_seconds"] < worker["billed_ms"] / 1000 < wall, worker)
            self.assertAlmostEqual(worker["cost"]["gb_seconds"], 1769 / 1024 * worker["billed_ms"] / 1000, delta=0.002)
            self.assertGreater(min(worker["store"][key] for key in ("puts", "gets")), 20)
            self.assertGreater(min(worker["store"][key] for key in ("bytes_up", "bytes_down")), 1000)
            self.assertTrue(50 < worker["max_memory_used_mb"] < 1769, worker)

    def test_weights_load_into_pytorch_with_the_same_accuracy(self):
        (run_dir,) = self.train_cases(("resnet", "sgd", "2x2", "pipelined"))
        chain = load(self.archive("resnet"))
        self.assertEqual(set(load_safetensors(run_dir / "model.safetensors")), set(chain.state_dict()))
        load_weights(chain, run_dir / "model.safetensors")
        script = torch.jit.load(str(run_dir / "model.pt"))
        self.assertFalse(script.training)
        self.assertEqual(set(script.state_dict()), set(chain.state_dict()))
        for name, tensor in script.state_dict().items():
            self.assertTrue(torch.equal(tensor, chain.state_dict()[name]), name)
        last = evaluations_of(run_dir)[-1]
        self.assertEqual(last["steps"], STEPS)
        for model in (script, chain.eval()):
            self.assertEqual(self.correct_on_test_set(model), (last["correct"], last["samples"]))

    def correct_on_test_set(self, model):
        """How many of how many test records the model gets right."""
        data = Dataset(self.work / "test")
        images = (torch.from_numpy(data.inputs).float() / 255 - 0.5) / 0.25
        with torch.no_grad():
            correct = model(images).argmax(1) == torch.from_numpy(data.targets).long()
        return int(correct.sum()), len(correct)

    def test_exported_python_model_comes_back(self):
        archive, tool = self.work / "exported", Path(__file__).with_name("export_round_trip.py")
        python(tool, "export", archive)
        job = self.job({"archive": str(archive)}, {"steps": 30, **ADAM}, {"cuts": [2], "replicas": 2})
        run_dir = self.train("exported-run", job)
        python(tool, "compare", run_dir)
        self.check_against_reference("exported", run_dir, job, archive)


if __name__ == "__main__":
    harness.main()
