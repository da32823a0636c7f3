#include "runtime/worker.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "core/run_layout.h"
#include "data/dataset.h"
#include "data/parallel.h"
#include "data/safetensors.h"
#include "runtime/background_queue.h"
#include "runtime/batch_loader.h"
#include "runtime/round_runner.h"
#include "runtime/round_sequence.h"
#include "runtime/step_log.h"
#include "runtime/trace_recorder.h"

namespace funcpipe {
namespace {

constexpr std::size_t kLoadAhead = 4;  // micro-batches of data in memory before their turn
constexpr int kParallelDownloads = 8;

Buffer fetch(ObjectStore& store, const std::string& key) {
  auto object = store.get(key);
  if (!object) fail(ErrorCode::kNotFound, "'{}' is not in the store", key);
  return std::move(*object);
}

// A dataset together with the store it lies in.
struct OpenDataset {
  std::unique_ptr<ObjectStore> store;
  std::unique_ptr<Dataset> dataset;
};

class Worker {
 public:
  Worker(const WorkerTask& task, const WorkerEnvironment& environment)
      : task_(task),
        environment_(environment),
        layout_(task.run),
        shape_{task.worker, task.plan.stage_count(), task.plan.replicas, task.plan.all_reduce,
               task.job.training.clip_norm > 0},
        store_(environment.open_store(task.store)),
        mailbox_(*store_, task.run, layout_.stop(), environment.clock) {}

  WorkerReport run() {
    open_data();
    build_stage();
    start_loaders();
    WorkerReport report;
    train(report);
    background_.finish();
    write_trace();
    report.usage = environment_.usage();
    report.compute_seconds = trace_.compute_seconds();
    report.trace_events_dropped = trace_.dropped();
    return report;
  }

 private:
  OpenDataset open_dataset(const std::string& url, double cache_share) {
    OpenDataset open;
    open.store = environment_.open_store(url);
    DatasetOptions options;
    options.cache_bytes =
        static_cast<std::uint64_t>(static_cast<double>(environment_.memory_bytes) * cache_share);
    open.dataset = std::make_unique<Dataset>(*open.store, "", options);
    return open;
  }

  // Every stage reads the index: all must agree on the number of steps.
  void open_data() {
    train_ = open_dataset(task_.job.data.train, kTrainCacheShare);
    if (!task_.job.data.test.empty()) test_ = open_dataset(task_.job.data.test, kTestCacheShare);
    sizes_ = {train_.dataset->records(), test_.dataset ? test_.dataset->records() : 0};
  }

  void build_stage() {
    const TraceRecorder::Scope scope(trace_, 2, "load model", -1);
    const auto manifest_text = fetch(*store_, layout_.model_file("manifest.json"));
    const auto manifest =
        ModelManifest::from_config(ConfigNode::from_text(manifest_text.text(), "manifest.json"));
    const auto& stage = task_.plan.stages.at(static_cast<std::size_t>(shape_.worker.stage));
    StageSource source{task_.job,
                       {},
                       {},
                       manifest.inputs,
                       stage.first_layer,
                       shape_.is_first(),
                       shape_.is_last(),
                       train_.dataset->classes()};
    source.layers.assign(manifest.layers.begin() + stage.first_layer,
                         manifest.layers.begin() + stage.last_layer);
    source.layer_files.resize(source.layers.size());
    for_each_in_parallel(source.layers.size(), kParallelDownloads, [&](std::size_t i) {
      source.layer_files[i] = fetch(*store_, layout_.model_file(source.layers[i].file));
    });
    compute_ = environment_.make_stage(std::move(source));
    if (task_.step > 0) load_checkpoint();
  }

  void load_checkpoint() {
    const auto file = parse_safetensors(
        fetch(*store_, layout_.checkpoint(shape_.worker, task_.step)), "checkpoint");
    compute_->load_state(file);
  }

  RoundSequence rounds() const {
    return {task_.job.training, sizes_, shape_.worker.replica, shape_.replicas, task_.step};
  }

  // Walks over all micro-batches of all rounds, as the lanes will ask for them.
  std::unique_ptr<BatchLoader> make_loader(
      TensorBundle (Dataset::*read)(std::span<const std::uint32_t>)) {
    auto sequence = std::make_shared<RoundSequence>(rounds());
    auto order = std::make_shared<RecordOrder>(sizes_.train_records, task_.job.seed,
                                               task_.job.training.shuffle);
    auto read_next = [this, read, sequence, order, round = std::optional<Round>(),
                      next = std::size_t{0}]() mutable -> std::optional<TensorBundle> {
      while (!round || next == round->own.size()) {
        round = sequence->next();
        next = 0;
        if (!round) return std::nullopt;
      }
      auto& dataset = round->training ? *train_.dataset : *test_.dataset;
      return (dataset.*read)(order->records(*round, round->own[next++]));
    };
    return std::make_unique<BatchLoader>(std::move(read_next), kLoadAhead);
  }

  void start_loaders() {
    if (shape_.is_first()) inputs_ = make_loader(&Dataset::read_inputs);
    if (shape_.is_last()) targets_ = make_loader(&Dataset::read_targets);
  }

  void train(WorkerReport& report) {
    StepLog log(*store_, layout_, shape_.worker.replica, background_, environment_.clock);
    RoundRunner runner(shape_, task_.job.training.clip_norm,
                       {*compute_, mailbox_, lanes_, background_, trace_, inputs_.get(),
                        targets_.get(), wait_deadline()});
    auto sequence = rounds();
    while (const auto round = sequence.next()) {
      const auto begin = environment_.clock.now();
      const auto sums = runner.run(*round, environment_.stop);
      if (shape_.is_last()) record(log, *round, sums);
      longest_round_ = std::max(longest_round_, Duration(environment_.clock.now() - begin));
      if (round->training && out_of_time() && round->step.index + 1 < sequence.steps()) {
        log.flush();
        report.status = WorkerReport::Status::kContinue;
        report.next_step = round->step.index + 1;
        return write_checkpoint(report.next_step);
      }
    }
    log.flush();
    if (shape_.worker.replica == 0) write_result();
  }

  void record(StepLog& log, const Round& round, const LossSums& sums) {
    if (round.training) {
      const auto usage = environment_.usage();
      log.add({round.step.index, sums.loss, sums.correct, sums.samples, round.learning_rate,
               unix_now_ns(), usage.puts, usage.gets});
      return;
    }
    const EvaluationRecord record{round.step.index, sums.loss, sums.correct, sums.samples};
    background_.post([this, key = layout_.evaluation(shape_.worker.replica, record.step),
                      text = to_text(record)] { put_if_absent(*store_, key, as_bytes(text)); });
  }

  // Time is kept for what may come after the last wait: the rest of a step, and a checkpoint.
  Deadline wait_deadline() const {
    return Deadline::at(environment_.deadline.time() - std::chrono::seconds(1));
  }

  bool out_of_time() const {
    const auto reserve = std::chrono::seconds(3) + 4 * longest_round_;
    return environment_.deadline.remaining(environment_.clock) < reserve;
  }

  void write_checkpoint(std::int64_t step) {
    const TraceRecorder::Scope scope(trace_, 1, "write checkpoint", step);
    store_tensors(layout_.checkpoint(shape_.worker, step), compute_->state());
  }

  void write_result() {
    const TraceRecorder::Scope scope(trace_, 1, "write weights", -1);
    store_tensors(layout_.result(shape_.worker.stage), compute_->weights());
  }

  void store_tensors(const std::string& key, const NamedTensors& tensors) {
    const auto file = write_safetensors(tensors.tensors, {});
    store_->put_if_absent(key, file.parts);
  }

  void write_trace() {
    const auto text = to_text(WorkerTrace{shape_.worker, task_.attempt, trace_.take()});
    put(*store_, layout_.trace(shape_.worker, task_.attempt), as_bytes(text));
  }

  const WorkerTask& task_;
  const WorkerEnvironment& environment_;
  const RunLayout layout_;
  const WorkerShape shape_;
  std::unique_ptr<ObjectStore> store_;
  Mailbox mailbox_;
  TraceRecorder trace_;
  OpenDataset train_, test_;
  RoundSequence::Sizes sizes_;
  std::unique_ptr<StageCompute> compute_;
  Duration longest_round_{};
  // Threads last: they end before what they use.
  BackgroundQueue background_;
  LaneExecutor lanes_;
  std::unique_ptr<BatchLoader> inputs_, targets_;
};

}  // namespace

WorkerReport run_worker(const WorkerTask& task, const WorkerEnvironment& environment) {
  try {
    return Worker(task, environment).run();
  } catch (const Error& error) {
    throw error.with_context(fmt::format("worker {}", task.worker.text()));
  }
}

}  // namespace funcpipe
