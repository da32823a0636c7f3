// Memory and CPU limits for single processes by Linux control groups, version 2 or 1, where this
// process may make them.
//
//   <a group that this process may use>/funcpipe-<pid>/<name>
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"

namespace funcpipe {

struct CgroupLimits {
  std::uint64_t memory_bytes = 0;  // 0: no limit
  double cpus = 0;                 // CPU seconds per second; 0: no limit
};

// A group for one process. The destructor kills what is in it and removes it.
class Cgroup {
 public:
  ~Cgroup();
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;

  // A process enters by writing "0" to each of these (open cgroup.procs files).
  std::vector<int> entrances() const;
  // Processes that the kernel has ended for going over the memory limit.
  std::uint64_t oom_kills() const;

 private:
  friend class CgroupTree;
  Cgroup(std::vector<std::filesystem::path> folders, std::filesystem::path oom_file);
  std::vector<std::filesystem::path> folders_;
  std::filesystem::path oom_file_;
  std::vector<FileDescriptor> entrances_;
};

// The groups of this process. Must outlive every Cgroup made from it.
class CgroupTree {
 public:
  // Looks for what is permitted and makes funcpipe-<pid> there; removes what dead processes have
  // left (they had no time to). Never throws: what is not permitted is not offered.
  CgroupTree();
  ~CgroupTree();
  CgroupTree(const CgroupTree&) = delete;
  CgroupTree& operator=(const CgroupTree&) = delete;

  bool can_limit_memory() const { return memory_ != nullptr; }
  bool can_limit_cpu() const { return cpu_ != nullptr; }
  // "cgroup v1: memory, cpu" or "not available: <why>", for people.
  std::string description() const;
  // A limit that cannot be set is left out; see can_limit_... Throws Error when the group cannot be
  // made.
  std::unique_ptr<Cgroup> create(const std::string& name, const CgroupLimits& limits) const;

 private:
  struct Hierarchy {
    int version;
    std::filesystem::path folder;  // funcpipe-<pid>
  };
  void find_v2();
  bool take_v2(const std::filesystem::path& place, bool with_cpu);
  void find_v1();
  bool note_obstacle(const std::filesystem::path& group);
  const Hierarchy* add(int version, const std::filesystem::path& folder);

  std::vector<std::unique_ptr<Hierarchy>> hierarchies_;
  const Hierarchy* memory_ = nullptr;
  const Hierarchy* cpu_ = nullptr;
  std::string obstacle_;
};

}  // namespace funcpipe
