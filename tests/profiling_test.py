"""`funcpipe profile` on the local platform: its figures against PyTorch's, small functions, interruptions, bad options."""

import json
import os
import re
import shutil
import signal
import time
import unittest

import torch

import harness
from harness import WorkspaceTest, funcpipe, write_job
from process_tree import Belongings, Run

MLP = {"builtin": "mlp", "options": {"inputs": [1, 12, 12], "hidden": [16, 12], "classes": 4}}
RESNET = {"builtin": "resnet-small", "options": {"image": [1, 12, 12], "channels": [8, 16], "blocks": 1, "classes": 4}}
QUICK = ("--rounds", 2, "--warm-up", 1)


def sum_of(profile, column, option=0):
    return sum(layer[column][option] for layer in profile["layers"])


def plain_pytorch(model, inputs, targets):
    """Median CPU seconds of forward and of backward, one thread."""
    torch.set_num_threads(1)
    forward, backward = [], []
    for _ in range(30):
        begin = time.process_time()
        loss = torch.nn.functional.cross_entropy(model(inputs), targets)
        middle = time.process_time()
        loss.backward()
        forward.append(middle - begin)
        backward.append(time.process_time() - middle)
    return sorted(forward)[15], sorted(backward)[15]


class ProfileTest(WorkspaceTest):
    def setUp(self):
        name = self.id().rpartition(".")[2]
        self.path = self.work / f"{name}.yaml"
        self.output = self.work / f"{name}.json"

    def write(self, model, platform=None, **training):
        write_job(self.path, self.job(model, training, {}, platform))

    def command(self, *options):
        return ("profile", self.path, "-o", self.output, *options)

    def profile(self, *options, timeout=120):
        """The profile, after checking that nothing else is left; `self.stderr` is what was shown."""
        result = funcpipe(*self.command(*options), timeout=timeout)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, f"{self.output}\n")
        self.stderr = result.stderr
        self.assertEqual([path for path in self.work.iterdir() if path.name.startswith(f"{self.output.name}.")], [])
        return json.loads(self.output.read_text())

    def test_figures_against_pytorch(self):
        """Layers large enough that PyTorch's Python does not count; within a factor of two, as machines are busy."""
        hidden, samples = [1024, 1024], 16
        options = {"inputs": [1, 12, 12], "hidden": hidden, "classes": 4}
        self.write({"builtin": "mlp", "options": options}, micro_batch_size=samples)
        profile = self.profile("--memory", 1769, "--rounds", 3)
        sizes = [144, *hidden, 4]
        layers = [torch.nn.Flatten()]
        for inputs, outputs in zip(sizes, sizes[1:]):
            layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
        model = torch.nn.Sequential(*layers[:-1])
        forward, backward = plain_pytorch(model, torch.rand(samples, 1, 12, 12), torch.randint(4, (samples,)))
        self.assertEqual(len(profile["layers"]), len(model))
        self.assertLess(sum_of(profile, "forward_seconds"), 2 * forward)
        self.assertGreater(sum_of(profile, "forward_seconds"), forward / 2)
        self.assertLess(sum_of(profile, "backward_seconds"), 2 * backward)
        self.assertGreater(sum_of(profile, "backward_seconds"), backward / 2)

        large = profile["layers"][3]
        self.assertEqual(large["parameter_bytes"], 4 * (1024 * 1024 + 1024))
        self.assertGreater(large["update_seconds"][0], 0.5 * sum_of(profile, "update_seconds"))
        kept = [layer["activation_bytes"] for layer in profile["layers"]]
        # Flattened inputs, what the ReLUs give, and of the loss no more than the outputs again.
        self.assertEqual(kept[:5], [4 * samples * 144, 0, 4 * samples * 1024, 0, 4 * samples * 1024])
        for layer, size in zip(profile["layers"], [144, 1024, 1024, 1024, 1024, 4]):
            self.assertGreater(layer["output_bytes"], 4 * samples * size)
            self.assertLessEqual(layer["output_bytes"], 4 * samples * size + 256)

    def test_links_and_shares(self):
        self.write(RESNET, {"uplink": "20 MB/s", "downlink": "40 MB/s", "latency": "30 ms", "cpu_limit": True})
        profile = self.profile("--memory", "512,1024", *QUICK)
        self.assertEqual([option["memory_mb"] for option in profile["options"]], [512, 1024])
        for option in profile["options"]:
            self.assertAlmostEqual(option["uplink_bytes_per_second"], 20e6, delta=4e6)
            self.assertAlmostEqual(option["downlink_bytes_per_second"], 40e6, delta=8e6)
            self.assertAlmostEqual(option["latency_seconds"], 0.03, delta=0.01)
            self.assertGreater(option["cold_start_seconds"], 0.1)
            self.assertGreater(option["base_memory_bytes"], 50e6)
        # Half the memory is half the CPU time.
        ratio = sum_of(profile, "forward_seconds", 0) / sum_of(profile, "forward_seconds", 1)
        self.assertGreater(ratio, 1.2)
        self.assertLess(ratio, 3.5)
        self.assertRegex(self.stderr, r"invocations, [\d.]+ GB-s; at AWS prices \$0\.\d+")

    def test_dilated_time_is_the_platforms(self):
        self.write(RESNET, {"uplink": "20 MB/s", "latency": "30 ms", "time_dilation": 3})
        option = self.profile("--memory", 1769, *QUICK)["options"][0]
        self.assertAlmostEqual(option["uplink_bytes_per_second"], 20e6, delta=4e6)
        self.assertAlmostEqual(option["latency_seconds"], 0.03, delta=0.01)

    def test_layers_that_do_not_fit_are_marked(self):
        """The middle layer alone takes 64 MB five times: weights, gradients, state, temporaries."""
        options = {"inputs": [1, 12, 12], "hidden": [4096, 4096], "classes": 4}
        self.write({"builtin": "mlp", "options": options}, optimizer={"kind": "adam"})
        profile = self.profile("--memory", "1769,256", *QUICK)
        fits = [layer["forward_seconds"][0] is not None for layer in profile["layers"]]
        self.assertEqual(fits, [True, True, True, False, True, True])
        for layer in profile["layers"]:
            self.assertIsNotNone(layer["forward_seconds"][1])
        self.assertIn("256 MB: layer 3 ('3', Linear) does not fit", self.stderr)

        result = funcpipe(*self.command("--memory", "256", *QUICK))
        self.assertEqual(result.returncode, 1)
        self.assertIn("layer 3 ('3', Linear) runs at none of the memory options", result.stderr)

    def test_interrupted_and_resumed(self):
        self.write(MLP)
        options = ("--memory", "512,1024", *QUICK)
        with Run(*self.command(*options)) as run:
            run.wait_for_stderr("1024 MB: layers 0 to 5")
            belongings = Belongings(run)
            run.signal(signal.SIGINT)
            self.assertEqual(run.wait(10), 130, run.stderr())
            belongings.check_gone()
            self.assertIn(f"goes on from {self.output}.partial", run.stderr())
        self.assertFalse(self.output.exists())
        profile = self.profile(*options)
        self.assertIn("going on with", self.stderr)
        self.assertNotIn("1024 MB: ", self.stderr)
        self.assertEqual(len(profile["options"]), 2)

    def test_killed_and_resumed_or_started_afresh(self):
        self.write(MLP)
        options = ("--memory", "512,1024", *QUICK)
        with Run(*self.command(*options)) as run:
            run.wait_for_stderr("1024 MB: layers 0 to 5")
            belongings = Belongings(run)
            run.signal(signal.SIGKILL)
            run.wait(10)
            belongings.check_gone()
        partial = self.output.with_name(f"{self.output.name}.partial")
        kept = partial.read_text()
        self.profile(*options)
        self.assertNotIn("1024 MB: ", self.stderr)
        partial.write_text(kept)
        self.profile("--fresh", *options)
        self.assertIn("1024 MB: layers 0 to 5", self.stderr)
        partial.write_text(kept)
        self.profile("--set", "training.micro_batch_size=2", *options)
        self.assertIn("starting anew", self.stderr)
        partial.write_text("nonsense")
        self.profile(*options)
        self.assertIn("starting anew", self.stderr)

    def test_a_function_that_is_killed_is_an_error(self):
        self.write(MLP)
        with Run(*self.command("--memory", 1024, "--rounds", 1000)) as run:
            run.wait_for_stderr("1024 MB: ")
            time.sleep(0.5)
            for worker in run.children("worker"):
                os.kill(worker, signal.SIGKILL)
            self.assertEqual(run.wait(20), 1, run.stderr())
            self.assertIn("the profiling function of 1024 MB ended: crashed", run.stderr())

    def test_own_store_is_left_as_it_was(self):
        self.write(MLP)
        store = self.work / "own-store"
        self.profile("--memory", 1024, "--set", f"store={store}", *QUICK)
        self.assertEqual([path for path in store.rglob("*") if path.is_file() and path.name[0] != "."], [])
        shutil.rmtree(store)

    def test_bad_options(self):
        self.write(MLP)
        for options, message in (
            (("--memory", "64"), "64 not in range"),
            (("--memory", "much"), "much"),
            (("--rounds", "0"), "--rounds"),
            (("--parallel", "0"), "--parallel"),
        ):
            result = funcpipe(*self.command(*options))
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(message, result.stderr)
        for options, message in (
            (("--parallel", "3", "--set", "platform.max_concurrency=2"), "--parallel 3 is more than the 2 functions"),
            (("--set", "training.micro_batch_size=none"), "training.micro_batch_size"),
            (("-o", self.work), "is a folder"),
        ):
            command = ("profile", self.path, *(options if "-o" in options else ("-o", self.output, *options)))
            result = funcpipe(*command)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertRegex(result.stderr, re.escape(message))
            self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)
        self.assertEqual(funcpipe("profile", self.path).returncode, 2)  # -o is missing


if __name__ == "__main__":
    harness.main()
