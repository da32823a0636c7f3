#include "cli/run_directory.h"

#include <array>
#include <cerrno>
#include <system_error>

#include "base/error.h"

namespace funcpipe {
namespace {

// What a run writes; anything else in the folder is the user's.
constexpr std::array<std::string_view, 9> kFiles = {
    "job.yaml", "plan.json", "metrics.jsonl",     "trace.json", "cost.json",
    "model.pt", "logs",      "model.safetensors", "store"};

}  // namespace

RunDirectory::RunDirectory(std::filesystem::path path, bool overwrite) : path_(std::move(path)) {
  std::error_code error;
  is_new_ = std::filesystem::create_directories(path_, error);
  if (error)
    throw error_from_errno(error.value(),
                           fmt::format("cannot make the run directory {}", path_.string()));
  for (const auto name : kFiles) {
    if (!std::filesystem::exists(file(name))) continue;
    if (!overwrite) {
      fail(ErrorCode::kAlreadyExists,
           "{} holds another run ({} is there); give another --run-dir, or --overwrite",
           path_.string(), name);
    }
    std::filesystem::remove_all(file(name), error);
    if (error)
      throw error_from_errno(error.value(), fmt::format("cannot remove {}", file(name).string()));
  }
  metrics_.reset(std::fopen(file("metrics.jsonl").c_str(), "wxe"));
  if (!metrics_)
    throw error_from_errno(errno, fmt::format("cannot write {}", file("metrics.jsonl").string()));
}

RunDirectory::~RunDirectory() = default;

void RunDirectory::discard() {
  metrics_.reset();
  std::error_code ignored;
  for (const auto name : kFiles) std::filesystem::remove_all(file(name), ignored);
  if (is_new_) std::filesystem::remove(path_, ignored);
}

void RunDirectory::add(const StepSummary& summary) {
  add_line({{"step", summary.step},
            {"epoch", summary.epoch},
            {"loss", summary.loss},
            {"accuracy", summary.accuracy},
            {"samples", summary.samples},
            {"learning_rate", summary.learning_rate},
            {"seconds", summary.seconds}});
}

void RunDirectory::add(const EvaluationSummary& summary) {
  add_line({{"evaluation", true},
            {"steps", summary.step},
            {"loss", summary.loss},
            {"accuracy", summary.accuracy},
            {"correct", summary.correct},
            {"samples", summary.samples}});
}

void RunDirectory::add_line(const nlohmann::json& line) {
  const auto text = line.dump() + "\n";
  if (std::fwrite(text.data(), 1, text.size(), metrics_.get()) != text.size() ||
      std::fflush(metrics_.get()) != 0) {
    throw error_from_errno(errno, fmt::format("cannot write {}", file("metrics.jsonl").string()));
  }
}

}  // namespace funcpipe
