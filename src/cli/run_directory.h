// The folder a run leaves: weights, metrics, timeline, cost, the job as run. docs/formats.md
// describes the files.
#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/run_record.h"
#include "core/trace.h"

namespace funcpipe {

class RunDirectory {
 public:
  // Makes the folder. Throws Error(kAlreadyExists) when it holds files of another run and
  // `overwrite` is not set; with it those files are removed.
  RunDirectory(std::filesystem::path path, bool overwrite);
  ~RunDirectory();

  // Removes what was written for a run that could not start, and the folder unless it was there
  // before or holds something else.
  void discard();

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path file(std::string_view name) const { return path_ / name; }

  // Lines of metrics.jsonl, written as they come.
  void add(const StepSummary& summary);
  void add(const EvaluationSummary& summary);

 private:
  void add_line(const nlohmann::json& line);

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::filesystem::path path_;
  bool is_new_;
  std::unique_ptr<std::FILE, Close> metrics_;
};

}  // namespace funcpipe
