"""Training end to end on the local platform, against the plain PyTorch loop."""

import json
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

import harness
from harness import WorkspaceTest, evaluations_of, funcpipe, python, steps_of

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

    def check_against_reference(self, case):
        model, training, shape, all_reduce = case
        job = self.shaped_job(model, training, shape, all_reduce)
        run_dir = self.train("-".join(case), job)
        output = python("-m", "funcpipe.reference", *reference_arguments(job, self.archive(model), STEPS)).stdout
        expected = [json.loads(line) for line in output.splitlines() if '"step"' in line][:STEPS]
        got = steps_of(run_dir)
        self.assertEqual([line["step"] for line in got], list(range(STEPS)))
        worst = max(abs(a["loss"] - b["loss"]) / abs(b["loss"]) for a, b in zip(got, expected))
        self.assertLess(worst, 1e-4, f"{case}: worst relative difference of a step's loss {worst}")
        return f"{'-'.join(case)}: worst relative difference {worst:.1e}"

    def test_losses_equal_the_plain_pytorch_loop(self):
        for model in MODELS:
            self.archive(model)
        with ThreadPoolExecutor(2) as pool:
            for line in pool.map(self.check_against_reference, CASES):
                print("   ", line)

    def weights(self, run_dir):
        return (Path(run_dir) / "model.safetensors").read_bytes()

    def test_same_seed_same_bits_and_cuts_do_not_matter(self):
        jobs = {
            "first": self.shaped_job("resnet", "adam", "2x2"),
            "second": self.shaped_job("resnet", "adam", "2x2"),
            "three-phase": self.shaped_job("resnet", "adam", "2x2", "three-phase"),
            "whole-resnet": self.shaped_job("resnet", "sgd", "1x1"),
            "cut-resnet": self.shaped_job("resnet", "sgd", "3x1"),
            "whole-mlp": self.shaped_job("mlp", "nesterov", "1x1"),
            "cut-mlp": self.shaped_job("mlp", "nesterov", "3x1"),
        }
        with ThreadPoolExecutor(2) as pool:
            runs = dict(zip(jobs, pool.map(lambda item: self.train(f"bits-{item[0]}", item[1]), jobs.items())))
        for one, other in (("first", "second"), ("first", "three-phase"), ("whole-resnet", "cut-resnet"),
                           ("whole-mlp", "cut-mlp")):
            self.assertEqual(self.weights(runs[one]), self.weights(runs[other]), f"{one} and {other} differ")

    def test_a_run_longer_than_the_time_limit_goes_on_in_new_functions(self):
        job = self.shaped_job("mlp", "adam", "2x2")
        job["training"]["steps"] = 150
        whole = self.train("whole", job)
        job["platform"].update({"time_limit": "8 s", "latency": "5 ms"})
        parts = self.train("parts", job)
        self.assertEqual(self.weights(whole), self.weights(parts))
        cost = json.loads((parts / "cost.json").read_text())
        self.assertTrue(any(worker["invocations"] > 1 for worker in cost["workers"]), cost)

    def test_run_directory(self):
        job = self.shaped_job("lenet", "adam", "2x2")
        job["platform"].update({"uplink": "70 MB/s", "downlink": "70 MB/s", "latency": "2 ms", "time_dilation": 2})
        run_dir = self.train("directory", job, "--set", "training.steps=20")
        self.check_trace(json.loads((run_dir / "trace.json").read_text()))
        self.check_cost(json.loads((run_dir / "cost.json").read_text()))
        self.assertFalse((run_dir / "store").exists())
        self.assertEqual(len(steps_of(run_dir)), 20)
        again = funcpipe("train", run_dir / "job.yaml", "--run-dir", self.work / "runs" / "again")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(self.weights(run_dir), self.weights(self.work / "runs" / "again"))

    def check_trace(self, events):
        names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
        self.assertEqual(sorted(names.values()), ["worker 0.0", "worker 0.1", "worker 1.0", "worker 1.1"])
        spans = [event for event in events if event["ph"] == "X"]
        self.assertEqual({event["tid"] for event in spans}, {0, 1, 2})
        for row in {(event["pid"], event["tid"]) for event in spans}:
            lane = sorted((e["ts"], e["dur"]) for e in spans if (e["pid"], e["tid"]) == row and "step" in e.get("args", {}))
            for (begin, duration), (following, _) in zip(lane, lane[1:]):
                self.assertLessEqual(begin + duration, following + 1, "tasks of one lane overlap")

    def check_cost(self, cost):
        self.assertEqual(len(cost["workers"]), 4)
        total = sum(worker["cost"]["total_usd"] for worker in cost["workers"]) + cost["client"]["cost"]["total_usd"]
        self.assertAlmostEqual(cost["total"]["total_usd"], total, places=12)
        for worker in cost["workers"]:
            self.assertGreater(worker["billed_ms"], 0)
            self.assertGreater(worker["store"]["puts"], 20)
            self.assertGreater(worker["store"]["bytes_up"], 0)
            self.assertGreater(worker["max_memory_used_mb"], 50)

    def test_weights_load_into_pytorch_with_the_same_accuracy(self):
        import sys
        sys.path.insert(0, str(harness.SOURCE / "python"))
        from funcpipe.dataset import Dataset
        from funcpipe.weights import load_safetensors

        run_dir = self.train("pytorch", self.shaped_job("resnet", "adam", "2x2"))
        model = torch.jit.load(str(run_dir / "model.pt"))
        weights = load_safetensors(run_dir / "model.safetensors")
        self.assertEqual(set(weights), set(model.state_dict()))
        for name, tensor in model.state_dict().items():
            self.assertTrue(torch.equal(tensor, weights[name]), name)
        data = Dataset(self.work / "test")
        images = (torch.from_numpy(data.inputs).float() / 255 - 0.5) / 0.25
        with torch.no_grad():
            correct = int((model(images).argmax(1) == torch.from_numpy(data.targets).long()).sum())
        last = evaluations_of(run_dir)[-1]
        self.assertEqual((correct, len(images)), (last["correct"], last["samples"]))

    def test_exported_python_model_comes_back(self):
        result = python(Path(__file__).with_name("export_round_trip.py"), "export", self.work / "exported")
        job = self.job({"archive": str(self.work / "exported")}, {"steps": 30, **ADAM}, {"cuts": [2], "replicas": 2})
        run_dir = self.train("exported-run", job)
        python(Path(__file__).with_name("export_round_trip.py"), "compare", run_dir)
        self.assertLess(steps_of(run_dir)[-1]["loss"], steps_of(run_dir)[0]["loss"] * 1.2, result.stdout)


if __name__ == "__main__":
    harness.main()
