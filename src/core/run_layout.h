// Where the objects of a run lie in its store; every key of a run begins with its prefix.
//
//   <run>/model/manifest.json, .../<layer file>    the model, one object a layer
//   <run>/m/<step>..., <run>/e/<step>...           messages (collective/mailbox.h), short-lived
//   <run>/metrics/<replica>/<first step>           step records of one last-stage worker
//   <run>/evaluation/<replica>/<step>              its sums over its share of the test set
//   <run>/checkpoint/<stage>.<replica>/<step>      state of a worker before that step
//   <run>/result/<stage>                           final weights of a stage (safetensors)
//   <run>/trace/<stage>.<replica>/<attempt>        events of one attempt
//   <run>/stop                                     exists once the run is to end early
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/plan.h"

namespace funcpipe {

class RunLayout {
 public:
  explicit RunLayout(std::string prefix) : prefix_(std::move(prefix)) {}
  const std::string& prefix() const { return prefix_; }

  std::string model_file(std::string_view file) const {
    return fmt::format("{}/model/{}", prefix_, file);
  }
  std::string metrics(int replica, std::int64_t first_step) const {
    return fmt::format("{}/metrics/{}/{}", prefix_, replica, first_step);
  }
  std::string evaluation(int replica, std::int64_t step) const {
    return fmt::format("{}/evaluation/{}/{}", prefix_, replica, step);
  }
  std::string checkpoint(const WorkerId& worker, std::int64_t step) const {
    return fmt::format("{}/checkpoint/{}/{}", prefix_, worker.text(), step);
  }
  std::string result(int stage) const { return fmt::format("{}/result/{}", prefix_, stage); }
  std::string trace(const WorkerId& worker, int attempt) const {
    return fmt::format("{}/trace/{}/{}", prefix_, worker.text(), attempt);
  }
  std::string stop() const { return prefix_ + "/stop"; }

 private:
  std::string prefix_;
};

}  // namespace funcpipe
