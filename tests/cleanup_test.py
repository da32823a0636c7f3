"""What is left of a run, however it ends; what it shows while it goes on; the host by itself, seen by an independent client."""

import json
import os
import pty
import re
import shutil
import signal
import subprocess
import time
import unittest
from pathlib import Path

import harness
from harness import WorkspaceTest, steps_of, write_job
from process_tree import Belongings, Run, listening_ports, wait_until

MLP = {"builtin": "mlp", "options": {"inputs": [1, 12, 12], "hidden": [16, 12], "classes": 4}}
ENDLESS = {"steps": 1000000, "evaluate_every_epochs": 0}
AWS = shutil.which("aws", path="/usr/bin")


class RunTest(WorkspaceTest):
    def setUp(self):
        self.run_dir = self.work / "cleanup-runs" / self.id().rpartition(".")[2]
        self.path = self.work / f"{self.run_dir.name}.yaml"

    def start(self, job, **options):
        write_job(self.path, job)
        return Run("train", self.path, "--run-dir", self.run_dir, **options)

    def endless(self, **platform):
        """Two stages that would go on for hours, without heating the machine."""
        return self.job(MLP, ENDLESS, {"cuts": [3]}, {"latency": "10 ms", **platform})


class CleanupTest(RunTest):
    def check_stopped(self, run, belongings, steps):
        self.assertEqual(run.wait(10), 130, run.stderr())
        self.assertLess(run.seconds, 5)
        belongings.check_gone()
        self.assertIn("funcpipe: stopped", run.stderr())
        self.assertIn(str(self.run_dir), run.stderr())
        self.assertFalse((self.run_dir / "store").exists())
        self.assertTrue((self.run_dir / "cost.json").exists())
        if steps:
            self.assertGreaterEqual(len(steps_of(self.run_dir)), steps)
            self.assertEqual([step["step"] for step in steps_of(self.run_dir)], list(range(len(steps_of(self.run_dir)))))

    def test_success(self):
        with self.start(self.job(MLP, {"steps": 400}, {"cuts": [3]})) as run:
            run.wait_for_stderr("step 1/")
            belongings = Belongings(run)
            self.assertEqual(run.wait(60), 0, run.stderr())
            belongings.check_gone(timeout=1)
        self.assertEqual(len(belongings.processes), 3)  # a host and two workers, each with a port
        self.assertEqual(len(belongings.ports), 3)
        self.assertFalse((self.run_dir / "store").exists())

    def test_failure(self):
        with self.start(self.job(MLP, {"steps": 100000, "optimizer": {"kind": "sgd", "learning_rate": 1e6}}, {"cuts": [3]})) as run:
            run.wait_for_host()
            belongings = Belongings(run)
            self.assertEqual(run.wait(20), 1)
            belongings.check_gone()

    def test_interrupt_in_mid_run(self):
        with self.start(self.endless()) as run:
            run.wait_for_stderr("step 1/")
            belongings = Belongings(run)
            self.assertEqual(len(run.children("worker")), 2)
            run.signal(signal.SIGINT)
            self.check_stopped(run, belongings, steps=1)

    def test_terminate_in_mid_run(self):
        with self.start(self.endless()) as run:
            run.wait_for_stderr("step 1/")
            belongings = Belongings(run)
            run.signal(signal.SIGTERM)
            self.check_stopped(run, belongings, steps=1)

    def test_interrupt_before_workers_start(self):
        with self.start(self.endless(cold_start="30 s")) as run:
            run.wait_for_host()
            run.wait_for_stderr("platform: local")
            belongings = Belongings(run)
            self.assertEqual(run.children("worker"), [])
            run.signal(signal.SIGINT)
            self.check_stopped(run, belongings, steps=0)

    def test_interrupt_at_once(self):
        """While the job is still being read, or even before the signal is watched."""
        for delay in (0, 0.05, 0.2, 0.5):
            with self.start(self.endless()) as run:
                time.sleep(delay)
                belongings = Belongings(run)
                run.signal(signal.SIGINT)
                self.assertIn(run.wait(10), (130, -signal.SIGINT), run.stderr())
                belongings.check_gone()
            shutil.rmtree(self.run_dir, ignore_errors=True)

    def test_two_interrupts_in_a_row(self):
        with self.start(self.endless()) as run:
            run.wait_for_stderr("step 1/")
            belongings = Belongings(run)
            run.signal(signal.SIGINT)
            time.sleep(0.01)
            run.signal(signal.SIGINT)
            self.assertEqual(run.wait(10), 130, run.stderr())
            belongings.check_gone()

    def test_killed_client(self):
        with self.start(self.endless()) as run:
            run.wait_for_stderr("step 1/")
            belongings = Belongings(run)
            run.signal(signal.SIGKILL)
            run.wait(10)
            belongings.check_gone()
            self.assertGreaterEqual(len(steps_of(self.run_dir)), 1)

    def test_killed_host_and_its_successor(self):
        """Nobody is left to remove the cgroups of a host that was killed: the next host does."""
        with self.start(self.endless()) as run:
            run.wait_for_stderr("step 1/")
            belongings = Belongings(run)
            os.kill(run.children("host")[0], signal.SIGKILL)
            self.assertEqual(run.wait(20), 1, run.stderr())
        with Run("host") as host:
            wait_until(lambda: "port" in host.stdout(), 10, "the host")
            belongings.check_gone()


class ProgressTest(RunTest):
    def test_plain_lines(self):
        self.run_dir = Path("relative: 100 %41")  # neither a URL nor escaped
        with self.start(self.job(MLP, {"steps": 30}), cwd=self.work) as run:
            self.assertEqual(run.wait(30), 0, run.stderr())
            text, output = run.stderr(), run.stdout()
        self.assertNotIn("\r", text)
        self.assertNotIn("\033", text)
        self.assertRegex(text, r"(?m)^step 1/30  epoch 1  loss \d+\.\d+")
        self.assertRegex(text, r"(?m)^step 30/30  epoch \d+  loss .* samples/s  about \$\d.* ETA 0:00$")
        self.assertRegex(text, r"(?m)^first step done .* after launch")
        self.assertRegex(text, r"(?m)^after step 30: test loss .* \(\d+ of 21\)")
        self.assertEqual(output.splitlines(), [str(self.run_dir / "model.safetensors"), str(self.run_dir / "model.pt")])

    def test_bar_on_a_terminal(self):
        write_job(self.path, self.endless())
        child, terminal = pty.fork()
        if child == 0:
            os.execve(harness.FUNCPIPE, [harness.FUNCPIPE, "train", str(self.path), "--run-dir", str(self.run_dir)],
                      harness.ENVIRONMENT)
        text, until = "", time.monotonic() + 30
        line = re.compile(r"\r\033\[K\[[#.]{24}\] step \d+/1000000  epoch \d+  loss \d+\.\d+  \d+ samples/s  about \$\d+\.\d+  ETA \d+:\d\d")
        while not line.search(text):
            self.assertLess(time.monotonic(), until, text)
            text += os.read(terminal, 65536).decode()
        os.write(terminal, b"\x03")  # Ctrl-C goes to the whole foreground group
        try:
            while chunk := os.read(terminal, 65536):
                text += chunk.decode()
        except OSError:
            pass  # how Linux tells the end of a terminal
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 130, text)
        os.close(terminal)
        self.assertRegex(text, r"\nfuncpipe: stopped")


class HostTest(unittest.TestCase):
    """`funcpipe host` started by hand."""

    def setUp(self):
        self.host = Run("host", "--memory", "512")
        self.addCleanup(self.host.__exit__)
        self.port = json.loads(wait_until(lambda: self.host.stdout().endswith("\n") and self.host.stdout(), 10, "the host"))["port"]

    def aws(self, *arguments):
        environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y",
                       "AWS_DEFAULT_REGION": "eu-west-1", "AWS_EC2_METADATA_DISABLED": "true", "AWS_MAX_ATTEMPTS": "1"}
        return subprocess.run([AWS, "lambda", *map(str, arguments), "--endpoint-url", f"http://127.0.0.1:{self.port}"],
                              capture_output=True, text=True, timeout=60, env=environment)

    @unittest.skipUnless(AWS, "awscli is not installed")
    def test_aws_cli(self):
        listed = self.aws("list-functions")
        self.assertEqual(listed.returncode, 0, listed.stderr)
        functions = json.loads(listed.stdout)["Functions"]
        self.assertEqual([(f["FunctionName"], f["MemorySize"]) for f in functions], [("funcpipe-512", 512)])

        invoked = self.aws("invoke", "--function-name", "funcpipe-512", "--payload", '{"no": "task"}', "--cli-binary-format",
                           "raw-in-base64-out", "/dev/stderr")
        self.assertEqual(invoked.returncode, 0, invoked.stderr)
        self.assertIn('"FunctionError": "Unhandled"', invoked.stdout)
        error = json.loads(invoked.stderr)
        self.assertEqual(error["errorType"], "invalid_argument")
        self.assertIn("task", error["errorMessage"])

        missing = self.aws("invoke", "--function-name", "funcpipe-513", "/dev/null")
        self.assertIn("ResourceNotFoundException", missing.stderr)

    def test_signals_end_it(self):
        belongings = Belongings(self.host)
        belongings.ports = listening_ports(self.host.pid)
        self.assertIn(self.port, belongings.ports)
        self.host.signal(signal.SIGTERM)
        self.assertEqual(self.host.wait(5), 0)
        belongings.check_gone()

    def test_taken_port(self):
        with Run("host", "--port", self.port) as second:
            self.assertEqual(second.wait(10), 1)
            self.assertRegex(second.stderr(), f"{self.port}.*in use")


if __name__ == "__main__":
    harness.main()
