// For tests: whole training runs in this process, stages x replicas, without a store.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/job.h"
#include "nn/model_archive.h"
#include "nn/torch_stage.h"

namespace funcpipe {

// Records in memory: `input` holds `records` records of `input_facts`, and so on.
struct TestDataset {
  TensorFacts input, target;
  std::uint32_t records = 0;
  Buffer inputs, targets;

  static TestDataset images(const Shape& shape, std::uint32_t records, int classes,
                            std::uint64_t seed);  // random bytes and class ids
  TensorBundle read_inputs(const std::vector<std::uint32_t>& order) const;
  TensorBundle read_targets(const std::vector<std::uint32_t>& order) const;
};

struct TestRun {
  std::vector<double> losses;                  // mean over the mini-batch, one for each step
  std::map<std::string, std::string> weights;  // name -> bytes
};

class TestPipeline {
 public:
  // Stages between the cuts ({}: one stage).
  // `segment_layers` > 0: every segment of a stage has so many layers.
  TestPipeline(const ModelArchive& archive, const JobSpec& job, const std::vector<int>& cuts,
               int replicas = 1, int segment_layers = 0);

  // Trains steps [first, last) of the job on `data`; returns the mean loss of each.
  std::vector<double> train(const TestDataset& data, std::int64_t first, std::int64_t last);
  LossSums evaluate(const TestDataset& data);
  std::map<std::string, std::string> weights() const;  // of replica 0
  std::vector<NamedTensors> states() const;            // of replica 0, stage by stage
  void load(const NamedTensors& state);                // into every stage
  NamedTensors named_weights() const;                  // of replica 0, all stages
  StageCompute& stage(std::size_t stage, std::size_t replica = 0) {
    return *stages_.at(replica).at(stage);
  }

  // How micro-batches are held and run backward: no bit may depend on it.
  bool recompute = false;
  bool segmented = false;  // the last one to run backward

 private:
  LossSums run_replica(std::size_t replica, const TestDataset& data, const Step& step);
  LossSums forward(std::size_t replica, MicroBatchContext context, TensorBundle input,
                   TensorBundle target);
  static TensorBundle run_backward(StageCompute& stage, MicroBatchContext context,
                                   TensorBundle gradient);
  void all_reduce(const Step& step);
  void apply(const Step& step);

  JobSpec job_;
  int replicas_;
  std::vector<std::vector<std::unique_ptr<StageCompute>>> stages_;  // by replica, by stage
};

// Runs `steps` steps of the job from the archive's weights.
TestRun run_training(const ModelArchive& archive, const JobSpec& job, const TestDataset& data,
                     const std::vector<int>& cuts, int replicas, std::int64_t steps);

}  // namespace funcpipe
