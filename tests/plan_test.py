"""Planning from the command line: profiles by hand, plans, frontiers, simulations, and what is wrong with them."""

import json
import unittest
import xml.etree.ElementTree as xml

import harness
from harness import WorkspaceTest, funcpipe

OPTIONS = [
    {"memory_mb": 1024, "uplink_bytes_per_second": "70 MB/s", "downlink_bytes_per_second": 7e7, "latency_seconds": "40 ms"},
    {"memory_mb": 2048, "uplink_bytes_per_second": 7e7, "downlink_bytes_per_second": 7e7, "latency_seconds": 0.04},
]


def layer(name, forward, parameters="4 MB", output="1 MB"):
    return {
        "name": name, "parameter_bytes": parameters, "activation_bytes": "20 MB", "output_bytes": output,
        "forward_seconds": [forward, forward / 2], "backward_seconds": [2 * forward, forward],
    }


class PlanTest(WorkspaceTest):
    def setUp(self):
        super().setUp()
        self.profile = {
            "funcpipe_profile": 1, "model": "by-hand", "platform": "aws-lambda", "micro_batch_size": 4,
            "options": [dict(option) for option in OPTIONS],
            "layers": [layer("a", 0.2), layer("b", 0.3, output="8 MB"), layer("c", 0.1), layer("d", 0.4, parameters="60 MB")],
        }
        self.settings = {"model": {"builtin": "mlp"}, "data": {"train": "nowhere"},
                    "training": {"batch_size": 64, "micro_batch_size": 4}}

    def files(self):
        job, profile = self.work / "job.json", self.work / "profile.json"
        job.write_text(json.dumps(self.settings))
        profile.write_text(json.dumps(self.profile))
        return job, profile

    def run_on(self, command, *options):
        job, profile = self.files()
        return funcpipe(command, job, "--profile", profile, *options)

    def plan(self, *options):
        result = self.run_on("plan", "--json", *options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def assert_error(self, result, *parts):
        self.assertEqual(result.returncode, 1, result.stdout)
        for part in parts:
            self.assertIn(part, result.stderr)
        self.assertEqual(result.stderr.strip().splitlines()[-1].split(":")[0], "funcpipe")

    def test_objectives_and_limits(self):
        cheapest = self.plan("--objective", "cheapest")["made_by"]
        fastest = self.plan("--objective", "fastest")["made_by"]
        self.assertEqual(cheapest["proof"], "optimal")
        self.assertLess(cheapest["iteration_usd"], fastest["iteration_usd"])
        self.assertLess(fastest["iteration_seconds"], cheapest["iteration_seconds"])
        between = (cheapest["iteration_seconds"] + fastest["iteration_seconds"]) / 2
        limited = self.plan("--objective", "cheapest", "--max-time", f"{between}s")["made_by"]
        self.assertLessEqual(limited["iteration_seconds"], between)
        self.assertGreaterEqual(limited["iteration_usd"], cheapest["iteration_usd"])
        few = self.plan("--objective", "fastest", "--max-functions", 2)
        self.assertLessEqual(len(few["stages"]) * few["replicas"], 2)
        money = self.plan("--alpha", "1,0")["made_by"]
        self.assertEqual(money["iteration_usd"], cheapest["iteration_usd"])

    def test_solvers_agree_or_are_no_better(self):
        exact = self.plan("--objective", "weighted", "--alpha", "1,65536")["made_by"]["objective_value"]
        milp = self.plan("--alpha", "1,65536", "--solver", "milp")["made_by"]["objective_value"]
        self.assertAlmostEqual(milp / exact, 1, places=9)
        for rival in ("tpdmp", "bayes"):
            value = self.plan("--alpha", "1,65536", "--solver", rival)["made_by"]["objective_value"]
            self.assertGreaterEqual(value, exact * (1 - 1e-12))

    def test_merging_never_helps(self):
        best = self.plan("--objective", "fastest")["made_by"]["iteration_seconds"]
        merged = self.plan("--objective", "fastest", "--merge", 2)
        self.assertGreaterEqual(merged["made_by"]["iteration_seconds"], best)
        self.assertEqual(merged["stages"][-1]["last_layer"], 4)

    def test_performance_models(self):
        for name in ("paper", "full"):
            self.assertEqual(self.plan("--performance-model", name)["made_by"]["performance_model"], name)

    def test_frontier(self):
        plot = self.work / "frontier.svg"
        result = self.run_on("plan", "--frontier", "--json", "--plot", plot)
        self.assertEqual(result.returncode, 0, result.stderr)
        points = json.loads(result.stdout)["points"]
        self.assertGreater(len(points), 2)
        for left, right in zip(points, points[1:]):
            self.assertLess(left["iteration_seconds"], right["iteration_seconds"])
            self.assertGreater(left["iteration_usd"], right["iteration_usd"])
        self.assertEqual(sum(point["recommended"] for point in points), 1)
        circles = xml.parse(plot).getroot().findall("{http://www.w3.org/2000/svg}circle")
        self.assertEqual(len(circles), len(points))
        self.assertIn("<- recommended", self.run_on("plan", "--frontier").stdout)

    def test_plan_file_is_what_simulate_reads(self):
        plan = self.work / "plan.json"
        result = self.run_on("plan", "--objective", "fastest", "-o", plan)
        self.assertIn("bottleneck", result.stdout)
        trace = self.work / "trace.json"
        result = self.run_on("simulate", "--plan", plan, "--json", "--trace", trace)
        self.assertEqual(result.returncode, 0, result.stderr)
        simulated = json.loads(result.stdout)["iteration_seconds"]
        planned = json.loads(plan.read_text())["made_by"]["iteration_seconds"]
        self.assertLess(abs(simulated / planned - 1), 0.3)
        self.assertTrue(json.loads(trace.read_text()))
        again = self.run_on("simulate", "--plan", plan, "--json")
        self.assertEqual(json.loads(again.stdout), json.loads(result.stdout))
        self.assertIn("critical path", self.run_on("simulate", "--plan", plan, "--jitter", "0.1").stdout)

    def test_simulate_plans_when_the_job_does_not(self):
        self.assertIn("iteration", self.run_on("simulate").stdout)

    def test_infeasible_says_which_constraint_binds(self):
        self.assert_error(self.run_on("plan", "--max-time", "1ms"), "the fastest plan takes")
        self.assert_error(self.run_on("plan", "--max-cost", "1e-9"), "the cheapest")
        self.profile["layers"][3]["parameter_bytes"] = "5 GB"
        self.assert_error(self.run_on("plan"), "'d'", "2048")

    def test_bad_profiles(self):
        def broken(message, *path, value):
            before = json.dumps(self.profile)
            at = self.profile
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = value
            self.assert_error(self.run_on("plan"), "profile.json:", message)
            self.profile = json.loads(before)

        broken("negative", "layers", 0, "forward_seconds", value=[-1, 1])
        broken("nan", "layers", 0, "forward_seconds", value=["nan", 1])
        broken("2 memory options", "layers", 1, "backward_seconds", value=[1])
        broken("is the unit right", "layers", 1, "backward_seconds", value=[1e9, 1])
        broken("bandwidth", "options", 0, "uplink_bytes_per_second", value=70)
        broken("at least one layer", "layers", value=[])
        broken("at least one memory option", "options", value=[])
        broken("at least 1", "micro_batch_size", value=0)

    def test_profile_and_job_must_belong_together(self):
        self.settings["training"]["micro_batch_size"] = 8
        self.assert_error(self.run_on("plan"), "micro-batches of 4", "8")
        self.settings["training"]["micro_batch_size"] = 4
        self.assert_error(self.run_on("plan", "--replicas", "3"), "3 replicas do not divide", "1, 2, 4, 8, 16")
        self.assert_error(self.run_on("plan", "--memory", "4096"), "1024, 2048")
        self.assert_error(self.run_on("plan", "--objective", "cheap"), "recommended, cheapest")
        self.assert_error(self.run_on("plan", "--platform", "azure"), "aws-lambda")
        job, _ = self.files()
        self.assert_error(funcpipe("plan", job), "funcpipe profile")
        self.assert_error(funcpipe("plan", job, "--profile", self.work / "none.json"), "none.json")

    def test_simulate_refuses_plans_of_other_profiles(self):
        plan = self.work / "plan.json"
        plan.write_text(json.dumps({
            "funcpipe_plan": 1, "replicas": 1, "all_reduce": "pipelined",
            "stages": [{"first_layer": 0, "last_layer": 4, "memory_mb": 1769}]}))
        self.assert_error(self.run_on("simulate", "--plan", plan), "1769", "1024, 2048")
        plan.write_text(plan.read_text().replace('"last_layer": 4', '"last_layer": 3'))
        self.assert_error(self.run_on("simulate", "--plan", plan), "layers")

    def test_train_makes_its_own_plan(self):
        lenet = {"builtin": "lenet", "options": {"image": [1, 12, 12], "channels": [4, 4], "kernel": 3, "hidden": [8], "classes": 4}}
        job = self.job(lenet, {"micro_batch_size": 4, "steps": 3}, platform={"time_dilation": 1})
        job["plan"] = {"objective": "fastest", "memory_mb": [1024, 1769], "max_functions": 4}
        run_dir = self.train("auto", job)
        plan = json.loads((run_dir / "plan.json").read_text())
        self.assertEqual(plan["made_by"]["proof"], "optimal")
        self.assertLessEqual(len(plan["stages"]) * plan["replicas"], 4)
        profile = run_dir / "profile.json"
        again = self.train("auto-again", job, "--set", f"plan.profile={profile}")
        self.assertEqual(json.loads((again / "plan.json").read_text())["stages"], plan["stages"])
        self.assertFalse((run_dir / "profile.json.partial").exists())


if __name__ == "__main__":
    harness.main()
