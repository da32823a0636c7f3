#include "core/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"

namespace funcpipe {
namespace {

using testing::HasSubstr;

// A job in which every section may be replaced.
struct JobText {
  std::string model = "{builtin: lenet}";
  std::string data = "{train: d}";
  std::string training = "{batch_size: 8}";
  std::string rest = "";

  JobSpec parse() const {
    return JobSpec::from_config(ConfigNode::from_text(
        fmt::format("model: {}\ndata: {}\ntraining: {}\n{}\n", model, data, training, rest),
        "job.yaml"));
  }
  std::string error() const {
    try {
      parse();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.what();
    }
    ADD_FAILURE() << "accepted: " << model << data << training << rest;
    return {};
  }
};

std::string error_in_model(const std::string& text) { return JobText{.model = text}.error(); }
std::string error_in_data(const std::string& text) { return JobText{.data = text}.error(); }
std::string error_in_training(const std::string& text) {
  return JobText{.training = "{batch_size: 8, " + text + "}"}.error();
}
std::string error_in_plan(const std::string& text) {
  return JobText{.rest = "plan: " + text}.error();
}
std::string error_in_platform(const std::string& text) {
  return JobText{.rest = "platform: " + text}.error();
}

TEST(JobTest, Defaults) {
  const auto job = JobText().parse();
  EXPECT_EQ(job.name, "job");
  EXPECT_EQ(job.training.epochs, 1);
  EXPECT_EQ(job.training.micro_batch_size, 8);
  EXPECT_TRUE(job.training.shuffle);
  EXPECT_EQ(job.training.optimizer.learning_rate, 0.01);
  EXPECT_EQ(job.plan, PlanSpec());
  EXPECT_EQ(job.platform, PlatformSection());
  EXPECT_EQ(JobText{.rest = "platform: local"}.parse(), job);
}

TEST(JobTest, PlansLeftToThePlanner) {
  EXPECT_EQ(JobText{.rest = "plan: auto"}.parse().plan.automatic, AutoPlanSpec());
  const auto plan = JobText{.rest =
                                "plan: {objective: weighted, alpha: '1,65536', max_time: 2 s, "
                                "max_cost: 0.01, max_functions: 8, memory_mb: [1024, 2048], "
                                "replicas: 2, profile: p.json, performance_model: paper, "
                                "solver: milp, merge: 12, time_limit: 1 min}"}
                        .parse()
                        .plan.automatic.value();
  EXPECT_EQ(plan.describe(),
            "weighted 1,65536 within 2.00 s an iteration and $0.01 an iteration and 8 functions");
  EXPECT_EQ(plan.memory_mb, (std::vector<int>{1024, 2048}));
  EXPECT_EQ(plan.replicas, (std::vector<int>{2}));
  EXPECT_EQ(plan.solver, PlanSolver::kMilp);
  EXPECT_EQ(plan.time_limit_seconds, 60);
}

TEST(JobTest, BadPlansLeftToThePlanner) {
  const auto error = [](const std::string& text) {
    return error_in_plan("{objective: cheapest, " + text + "}");
  };
  EXPECT_THAT(error_in_plan("{objective: cheap}"), HasSubstr("recommended, cheapest, fastest"));
  EXPECT_THAT(error_in_plan("{objective: weighted}"), HasSubstr("alpha"));
  EXPECT_THAT(error_in_plan("{objective: weighted, alpha: '1'}"), HasSubstr("'1,65536'"));
  EXPECT_THAT(error_in_plan("{objective: weighted, alpha: '-1,2'}"), HasSubstr("'1,65536'"));
  EXPECT_THAT(error_in_plan("{objective: weighted, alpha: '0,0'}"), HasSubstr("above 0"));
  EXPECT_THAT(error("alpha: '1,2'"), HasSubstr("weighted"));
  EXPECT_THAT(error("cuts: [3]"), HasSubstr("for the planner to choose"));
  EXPECT_THAT(error("max_time: 0"), HasSubstr("plan.max_time: must be above 0"));
  EXPECT_THAT(error("max_time: 2"), HasSubstr("'40 ms'"));
  EXPECT_THAT(error("max_cost: -1"), HasSubstr("above 0"));
  EXPECT_THAT(error("max_functions: 0"), HasSubstr("at least 1"));
  EXPECT_THAT(error("solver: gurobi"), HasSubstr("exact, milp, tpdmp, bayes"));
  EXPECT_THAT(error("performance_model: best"), HasSubstr("paper, full"));
  EXPECT_THAT(error("max_tim: 2 s"), HasSubstr("max_time"));
}

TEST(JobTest, DefaultsThatDependOnTheOptimizer) {
  const auto optimizer = [](const std::string& kind) {
    return JobText{.training = fmt::format("{{batch_size: 8, optimizer: {{kind: {}}}}}", kind)}
        .parse()
        .training.optimizer;
  };
  EXPECT_EQ(optimizer("sgd").learning_rate, 0.01);
  EXPECT_EQ(optimizer("adam").learning_rate, 0.001);
  EXPECT_EQ(optimizer("adam").weight_decay, 0);
  EXPECT_EQ(optimizer("adamw").weight_decay, 0.01);
  EXPECT_EQ(optimizer("sgd").state_values_per_parameter(), 0);
  EXPECT_EQ(optimizer("sgd, momentum: 0.9").state_values_per_parameter(), 1);
  EXPECT_EQ(optimizer("adam").state_values_per_parameter(), 2);
}

TEST(JobTest, ReadsScalarsWhereListsMayStand) {
  const auto job = JobText{.data = "{train: d, normalize: {mean: 0.5, std: [0.25]}}",
                           .rest = "plan: {cuts: 3, memory_mb: 512}"}
                       .parse();
  EXPECT_EQ(job.data.mean, std::vector{0.5});
  EXPECT_EQ(job.data.scale, std::vector{0.25});
  EXPECT_EQ(job.plan.cuts, std::vector{3});
  EXPECT_EQ(job.plan.memory_mb, std::vector{512});
}

TEST(JobTest, BadModels) {
  EXPECT_EQ(error_in_model("{}"),
            "job.yaml:1: model: give either 'builtin: NAME' or 'archive: PATH'");
  EXPECT_THAT(error_in_model("{builtin: a, archive: b}"), HasSubstr("give either"));
  EXPECT_THAT(error_in_model("lenet"), HasSubstr("model: expected a map of keys, got 'lenet'"));
  EXPECT_THAT(error_in_model("{archive: a, options: {x: 1}}"), HasSubstr("only a built-in model"));
  EXPECT_THAT(error_in_model("{builtin: a, options: [1]}"), HasSubstr("model.options: expected a"));
  EXPECT_THAT(error_in_model("{bultin: a}"), HasSubstr("did you mean 'builtin'?"));
}

TEST(JobTest, BadData) {
  EXPECT_THAT(error_in_data("{test: d}"), HasSubstr("data: key 'train' is missing"));
  EXPECT_THAT(error_in_data("{train: ''}"), HasSubstr("data.train: must not be empty"));
  EXPECT_THAT(error_in_data("{train: d, test: }"), HasSubstr("data.test: expected text"));
  EXPECT_THAT(error_in_data("{train: d, normalize: {mean: 1}}"), HasSubstr("'mean' and 'std'"));
  EXPECT_THAT(error_in_data("{train: d, normalize: {mean: [1, 2], std: 1}}"),
              HasSubstr("'mean' and 'std'"));
  EXPECT_THAT(error_in_data("{train: d, normalize: {mean: 1, std: 0}}"),
              HasSubstr("data.normalize.std: must be greater than 0"));
}

TEST(JobTest, BadTraining) {
  EXPECT_THAT(JobText{.training = "{}"}.error(),
              HasSubstr("training: key 'batch_size' is missing"));
  EXPECT_EQ(JobText{.training = "\n  bacth_size: 4"}.error(),
            "job.yaml:4: training.bacth_size: key 'batch_size' is missing; is this it?");
  EXPECT_THAT(JobText{.training = "{batch_size: 0}"}.error(),
              HasSubstr("training.batch_size: must be at least 1, is 0"));
  EXPECT_THAT(JobText{.training = "{batch_size: 99999999999}"}.error(),
              HasSubstr("must be within"));
  EXPECT_THAT(error_in_training("micro_batch_size: 9"),
              HasSubstr("must not exceed batch_size (8)"));
  EXPECT_THAT(error_in_training("micro_batch_size: 0"), HasSubstr("must be at least 1"));
  EXPECT_THAT(error_in_training("epochs: 0"), HasSubstr("training.epochs: must be at least 1"));
  EXPECT_THAT(error_in_training("steps: 0"), HasSubstr("training.steps: must be at least 1"));
  EXPECT_THAT(error_in_training("epochs: 1.5"), HasSubstr("expected a whole number, got '1.5'"));
  EXPECT_THAT(error_in_training("shuffle: maybe"), HasSubstr("expected true or false"));
  EXPECT_THAT(error_in_training("loss: l1"), HasSubstr("choose one of cross_entropy, mse"));
  EXPECT_THAT(error_in_training("clip_norm: -1"),
              HasSubstr("clip_norm: must be at least 0, is -1"));
  EXPECT_THAT(error_in_training("evaluate_every_epochs: -1"), HasSubstr("must be at least 0"));
  EXPECT_THAT(error_in_training("epoch: 3"), HasSubstr("did you mean 'epochs'?"));
}

TEST(JobTest, BadOptimizers) {
  const auto error = [](const std::string& text) {
    return error_in_training("optimizer: {" + text + "}");
  };
  EXPECT_THAT(error(""), HasSubstr("training.optimizer: key 'kind' is missing"));
  EXPECT_THAT(error("kind: adamax"), HasSubstr("'adamax' is not known here; choose one of sgd"));
  EXPECT_THAT(error("kind: sgd, beta1: 0.9"), HasSubstr("optimizer.beta1: unknown key"));
  EXPECT_THAT(error("kind: adam, momentum: 0.9"), HasSubstr("optimizer.momentum: unknown key"));
  EXPECT_THAT(error("kind: adam, beta2: 1"), HasSubstr("beta2: must be in [0, 1), is 1"));
  EXPECT_THAT(error("kind: sgd, learning_rate: -0.1"), HasSubstr("must be at least 0, is -0.1"));
  EXPECT_THAT(error("kind: sgd, learning_rate: 0,1"), HasSubstr("optimizer.1: unknown key"));
  EXPECT_THAT(error("kind: sgd, nesterov: true"), HasSubstr("needs a momentum greater than 0"));
  EXPECT_THAT(error("kind: sgd, nesterov: true, momentum: 0.9, dampening: 0.1"),
              HasSubstr("no dampening"));
}

TEST(JobTest, BadSchedules) {
  const auto error = [](const std::string& text) {
    return error_in_training("schedule: {" + text + "}");
  };
  EXPECT_THAT(error("kind: linear"), HasSubstr("choose one of constant, step, cosine"));
  EXPECT_THAT(error("kind: step"), HasSubstr("training.schedule: key 'every_steps' is missing"));
  EXPECT_THAT(error("kind: step, every_steps: 0"), HasSubstr("every_steps: must be at least 1"));
  EXPECT_THAT(error("kind: cosine, factor: 2"), HasSubstr("schedule.factor: unknown key"));
  EXPECT_THAT(error("kind: cosine, minimum: 0.5"),
              HasSubstr("minimum must not exceed the learning rate (0.01)"));
  EXPECT_THAT(error("kind: constant, warmup_steps: -1"), HasSubstr("must be at least 0"));
}

TEST(JobTest, BadPlans) {
  EXPECT_THAT(error_in_plan("{stages: 2, cuts: [3]}"), HasSubstr("give either 'stages'"));
  EXPECT_THAT(error_in_plan("{stages: 0}"), HasSubstr("plan.stages: must be at least 1"));
  EXPECT_THAT(error_in_plan("{stages: 4294967297}"), HasSubstr("plan.stages: must be within"));
  EXPECT_THAT(error_in_plan("{cuts: [5, 3]}"), HasSubstr("plan.cuts: cut 3 after 5"));
  EXPECT_THAT(error_in_plan("{cuts: [0]}"), HasSubstr("plan.cuts: cut 0 after 0"));
  EXPECT_THAT(error_in_plan("{cuts: [3, x]}"), HasSubstr("plan.cuts[1]: expected a whole number"));
  EXPECT_THAT(error_in_plan("{memory_mb: 0}"), HasSubstr("0 is not a memory size in MB"));
  EXPECT_THAT(error_in_plan("{memory_mb: []}"), HasSubstr("0 values for 1 stages"));
  EXPECT_THAT(error_in_plan("{cuts: [3], memory_mb: [1, 2, 3]}"),
              HasSubstr("3 values for 2 stages"));
  EXPECT_THAT(error_in_plan("{stages: 3, memory_mb: [1, 2]}"), HasSubstr("2 values for 3 stages"));
  EXPECT_THAT(error_in_plan("{memory_mb: 1 GB}"), HasSubstr("expected a whole number, got '1 GB'"));
  EXPECT_THAT(error_in_plan("{replicas: 0}"), HasSubstr("plan.replicas: must be at least 1"));
  EXPECT_THAT(error_in_plan("{all_reduce: ring}"), HasSubstr("three-phase and pipelined"));
  EXPECT_THAT(error_in_plan("atuo"), HasSubstr("expected auto, the path of a plan file"));
  EXPECT_THAT(error_in_plan("{replicas: 2}"),
              HasSubstr("plan.replicas: 2 replicas do not fit a mini-batch of 1 micro-batches"));
  EXPECT_EQ(JobText{.rest = "plan: runs/a/plan.json"}.parse().plan.file, "runs/a/plan.json");
}

TEST(JobTest, BadPlatforms) {
  EXPECT_THAT(error_in_platform("locla"), HasSubstr("platform 'locla' is not built in"));
  EXPECT_THAT(error_in_platform("{kind: aws}"), HasSubstr("platform.kind: platform 'aws'"));
  EXPECT_THAT(error_in_platform("{uplink: 70 MB}"), HasSubstr("'70 MB' is not a bandwidth"));
  EXPECT_THAT(error_in_platform("{latency: 5}"), HasSubstr("'5' is not a duration"));
  EXPECT_THAT(error_in_platform("{time_limit: 10 ms}"), HasSubstr("must be at least 1 s"));
  EXPECT_THAT(error_in_platform("{time_dilation: 0.5}"), HasSubstr("must be at least 1, is 0.5"));
  EXPECT_THAT(error_in_platform("{max_concurrency: 0}"), HasSubstr("must be at least 1"));
  EXPECT_THAT(error_in_platform("{memory_limit: 512}"), HasSubstr("expected true or false"));
}

TEST(JobTest, BadTopLevel) {
  EXPECT_THAT(JobText{.rest = "name: my job"}.error(), HasSubstr("'my job' is not a name"));
  EXPECT_THAT(JobText{.rest = "name: a/b"}.error(), HasSubstr("'a/b' is not a name"));
  EXPECT_THAT(JobText{.rest = "name: ''"}.error(), HasSubstr("'' is not a name"));
  EXPECT_THAT(JobText{.rest = "seed: -1"}.error(), HasSubstr("seed: must be at least 0, is -1"));
  EXPECT_THAT(JobText{.rest = "store: ''"}.error(), HasSubstr("store: must not be empty"));
  EXPECT_EQ(JobText{.rest = "plam: auto"}.error(),
            "job.yaml:4: plam: unknown key; did you mean 'plan'?");
}

// Specs that from_config can give, drawn at random.
class RandomJob {
 public:
  explicit RandomJob(std::uint64_t seed) : rng_(seed) {}

  JobSpec job() {
    JobSpec job;
    job.name = pick("job", "a-b_C9");
    job.seed = rng_() >> 1;
    if (maybe()) {
      job.model.archive = "m.zip";
    } else {
      job.model.builtin = "mlp";
      if (maybe()) job.model.options = {{"hidden", {128, 64}}, {"dropout", 0.5}, {"act", "relu"}};
    }
    job.data = data();
    job.training = training();
    job.plan = plan(job.training);
    job.platform.local = local();
    job.store = pick("", "file:///tmp/store");
    return job;
  }

 private:
  bool maybe() { return rng_.below(2) == 0; }
  int count(int least, int most) {
    return least + static_cast<int>(rng_.below(static_cast<std::uint64_t>(most - least + 1)));
  }
  std::string pick(const char* a, const char* b) { return maybe() ? a : b; }
  Duration duration() { return Duration(static_cast<std::int64_t>(rng_.below(1ULL << 50))); }
  double bandwidth() {
    return maybe() ? std::numeric_limits<double>::infinity() : 1e9 * (1 - rng_.uniform());
  }

  DataSpec data() {
    DataSpec data{.train = "d/train", .test = pick("", "d/test"), .mean = {}, .scale = {}};
    for (int i = count(0, 3); i > 0; --i) {
      data.mean.push_back(rng_.uniform() - 0.5);
      data.scale.push_back(1 - rng_.uniform());
    }
    return data;
  }

  OptimizerSpec optimizer() {
    OptimizerSpec spec;
    spec.kind = static_cast<OptimizerSpec::Kind>(count(0, 2));
    spec.learning_rate = rng_.uniform();
    spec.weight_decay = rng_.uniform();
    if (spec.kind == OptimizerSpec::Kind::kSgd) {
      spec.momentum = 1 - rng_.uniform();
      spec.nesterov = maybe();
      spec.dampening = spec.nesterov ? 0 : rng_.uniform();
    } else {
      spec.beta1 = rng_.uniform();
      spec.beta2 = rng_.uniform();
      spec.epsilon = rng_.uniform() * 1e-6;
    }
    return spec;
  }

  LearningRateSpec schedule(double learning_rate) {
    LearningRateSpec spec;
    spec.kind = static_cast<LearningRateSpec::Kind>(count(0, 2));
    spec.warmup_steps = count(0, 1000);
    if (spec.kind == LearningRateSpec::Kind::kStep) {
      spec.every_steps = count(1, 1000);
      spec.factor = rng_.uniform();
    }
    if (spec.kind == LearningRateSpec::Kind::kCosine) spec.minimum = learning_rate * rng_.uniform();
    return spec;
  }

  TrainingSpec training() {
    TrainingSpec training;
    training.epochs = count(1, 100);
    training.steps = maybe() ? 0 : count(1, 100'000);
    training.batch_size = count(1, 1000);
    training.micro_batch_size = count(1, static_cast<int>(training.batch_size));
    training.shuffle = maybe();
    training.loss = static_cast<LossKind>(count(0, 1));
    training.optimizer = optimizer();
    training.schedule = schedule(training.optimizer.learning_rate);
    training.clip_norm = rng_.uniform();
    training.evaluate_every_epochs = count(0, 5);
    return training;
  }

  PlanSpec plan(const TrainingSpec& training) {
    PlanSpec plan;
    if (count(0, 3) == 0) {
      plan.file = "plan.json";
      return plan;
    }
    plan.all_reduce = static_cast<AllReduceAlgorithm>(count(0, 1));
    if (count(0, 3) == 0) {
      plan.automatic = wishes();
      return plan;
    }
    int stages = count(1, 5);
    if (maybe()) {
      plan.stage_count = stages;
    } else {
      for (int i = 1; i < stages; ++i) plan.cuts.push_back(10 * i + count(0, 9));
    }
    if (maybe()) stages = 1;
    plan.memory_mb.clear();
    for (int i = 0; i < stages; ++i) plan.memory_mb.push_back(count(128, 10'240));
    const auto micro_batches =
        (training.batch_size + training.micro_batch_size - 1) / training.micro_batch_size;
    plan.replicas = count(1, static_cast<int>(micro_batches));
    return plan;
  }

  AutoPlanSpec wishes() {
    AutoPlanSpec wishes;
    wishes.objective = static_cast<PlanObjective>(count(0, 3));
    if (wishes.objective == PlanObjective::kWeighted) {
      wishes.usd_weight = rng_.uniform();
      wishes.seconds_weight = count(0, 1 << 20);
    }
    if (maybe()) wishes.max_seconds = to_seconds(duration()) + 1;
    if (maybe()) wishes.max_usd = rng_.uniform() + 1e-9;
    if (maybe()) wishes.max_functions = count(1, 100);
    if (maybe()) wishes.memory_mb = {count(128, 1024), count(1025, 10'240)};
    if (maybe()) wishes.replicas = {count(1, 8)};
    if (maybe()) wishes.profile = "profile.json";
    if (maybe()) wishes.performance_model = "paper";
    wishes.solver = static_cast<PlanSolver>(count(0, 3));
    if (maybe()) wishes.merge = count(1, 40);
    if (maybe()) wishes.time_limit_seconds = to_seconds(duration()) + 1;
    return wishes;
  }

  LocalPlatformSpec local() {
    LocalPlatformSpec local;
    local.time_limit = std::chrono::seconds(1) + duration();
    local.uplink_bytes_per_second = bandwidth();
    local.downlink_bytes_per_second = bandwidth();
    local.latency = duration();
    local.cold_start = duration();
    local.time_dilation = 1 + 10 * rng_.uniform();
    local.max_concurrency = count(1, 1000);
    local.memory_limit = maybe();
    local.cpu_limit = maybe();
    return local;
  }

  Rng rng_;
};

TEST(JobTest, ReadsBackWhatItWrites) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const auto job = RandomJob(seed).job();
    const auto text = job.to_json().dump(2);
    ASSERT_EQ(JobSpec::from_config(ConfigNode::from_text(text, "job.json")), job) << text;
  }
}

}  // namespace
}  // namespace funcpipe
