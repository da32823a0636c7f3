#include "platform/cgroup.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"

namespace funcpipe {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kPrefix = "funcpipe-";

// Writes a control file; false with errno when the kernel refuses the value.
bool write_control(const fs::path& file, const std::string& value) {
  const FileDescriptor out(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  return out &&
         ::write(out.get(), value.data(), value.size()) == static_cast<ssize_t>(value.size());
}

std::string read_control(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool has_word(const std::string& text, std::string_view word) {
  std::istringstream words(text);
  for (std::string one; words >> one;) {
    if (one == word) return true;
  }
  return false;
}

bool has_item(const std::string& list, std::string_view item) {
  std::string spaced = list;
  std::replace(spaced.begin(), spaced.end(), ',', ' ');
  return has_word(spaced, item);
}

struct Mount {
  std::string root;  // the group that is mounted
  fs::path point;
  std::string options;  // of the superblock: the controllers of a v1 hierarchy
};

// The mount of cgroup2, or of the v1 hierarchy with `controller`, from /proc/self/mountinfo:
// "36 35 0:30 <root> <point> <options> ... - <type> <source> <superblock options>".
std::optional<Mount> find_mount(std::string_view type, std::string_view controller) {
  std::ifstream table("/proc/self/mountinfo");
  for (std::string line; std::getline(table, line);) {
    const auto dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream before(line.substr(0, dash)), after(line.substr(dash + 3));
    std::string skip, kind;
    Mount mount;
    before >> skip >> skip >> skip >> mount.root >> mount.point;
    after >> kind >> skip >> mount.options;
    if (kind == type && (controller.empty() || has_item(mount.options, controller))) return mount;
  }
  return std::nullopt;
}

// This process's group in the hierarchy of `controller` (v2: "") as a folder:
// /proc/self/cgroup has "<id>:<controllers>:<path>".
std::optional<fs::path> own_folder(const Mount& mount, std::string_view controller) {
  std::ifstream table("/proc/self/cgroup");
  for (std::string line; std::getline(table, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (controller.empty() ? !controllers.empty() : !has_item(controllers, controller)) continue;
    if (mount.root != "/" && path.starts_with(mount.root)) path.erase(0, mount.root.size());
    const fs::path folder = path.size() > 1 ? mount.point / path.substr(1) : mount.point;
    return fs::exists(folder) ? folder : mount.point;
  }
  return std::nullopt;
}

std::string group_name() { return fmt::format("{}{}", kPrefix, ::getpid()); }

// The pid in "funcpipe-<pid>", or 0.
pid_t owner_of(const fs::path& folder) {
  const std::string name = folder.filename();
  pid_t pid = 0;
  if (name.starts_with(kPrefix)) {
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), pid);
  }
  return pid;
}

// Ended, also when its parent has not taken notice yet: "<pid> (<name>) Z ...".
bool is_dead(pid_t pid) {
  if (::kill(pid, 0) != 0) return errno == ESRCH;
  const std::string state = read_control(fmt::format("/proc/{}/stat", pid));
  const auto name_end = state.rfind(") ");
  return name_end != std::string::npos && name_end + 2 < state.size() &&
         (state[name_end + 2] == 'Z' || state[name_end + 2] == 'X');
}

void remove_empty_groups(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.is_directory(error)) ::rmdir(entry.path().c_str());
  }
  ::rmdir(folder.c_str());
}

// Removes the groups of dead owners anywhere below `folder`. Groups with processes in them cannot
// be removed, so a mistaken owner (of another pid namespace) loses nothing.
void sweep(const fs::path& folder, int depth = 0) {
  constexpr int kMaxDepth = 8;
  std::error_code error;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.is_directory(error) && !entry.is_symlink(error)) found.push_back(entry.path());
  }
  for (const auto& child : found) {
    const pid_t owner = owner_of(child);
    if (owner == 0 && depth < kMaxDepth) sweep(child, depth + 1);
    if (owner != 0 && is_dead(owner)) remove_empty_groups(child);
  }
}

bool make_group(const fs::path& folder) {
  return ::mkdir(folder.c_str(), 0755) == 0 || errno == EEXIST;
}

// Whether a child of this process may enter a group made in `folder`: the right to make groups is
// not enough.
bool can_enter(const fs::path& folder) {
  const fs::path probe = folder / "probe";
  if (!make_group(probe)) return false;
  const std::string procs = (probe / "cgroup.procs").string();
  const pid_t child = ::fork();
  if (child == 0) {
    const int file = ::open(procs.c_str(), O_WRONLY | O_CLOEXEC);
    ::_exit(file >= 0 && ::write(file, "0", 1) == 1 ? 0 : 1);
  }
  int status = 1;
  const bool entered = child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
  ::rmdir(probe.c_str());
  return entered;
}

void kill_members(const fs::path& folder) {
  std::ifstream members(folder / "cgroup.procs");
  for (pid_t pid = 0; members >> pid;) {
    if (pid > 0) ::kill(pid, SIGKILL);
  }
}

// A group whose processes were just killed stays busy until they are gone.
void remove_group(const fs::path& folder) {
  constexpr int kTries = 200;
  for (int tried = 0; tried < kTries; ++tried) {
    if (::rmdir(folder.c_str()) == 0 || errno != EBUSY) return;
    kill_members(folder);
    ::poll(nullptr, 0, 5);
  }
}

void limit_memory(int version, const fs::path& folder, std::uint64_t bytes) {
  const std::string value = std::to_string(bytes);
  if (version == 2) {
    write_control(folder / "memory.max", value);
    write_control(folder / "memory.swap.max", "0");
    write_control(folder / "memory.oom.group", "1");
  } else {
    write_control(folder / "memory.limit_in_bytes", value);
    write_control(folder / "memory.memsw.limit_in_bytes", value);
  }
}

// A short period keeps a throttled process from stopping for long; the kernel wants 1 ms of quota
// at least, and at most 1 s of period. A v1 group may not have more than its parent: then the
// parent's limit is the one that counts.
void limit_cpu(int version, const fs::path& folder, double cpus) {
  const double period_us = std::clamp(2000 / cpus, 20'000.0, 1'000'000.0);
  const auto period = static_cast<long>(period_us);
  const auto quota = std::max(1000L, static_cast<long>(period_us * cpus));
  if (version == 2) {
    write_control(folder / "cpu.max", fmt::format("{} {}", quota, period));
  } else {
    write_control(folder / "cpu.cfs_period_us", std::to_string(period));
    write_control(folder / "cpu.cfs_quota_us", std::to_string(quota));
  }
}

}  // namespace

Cgroup::Cgroup(std::vector<fs::path> folders, fs::path oom_file)
    : folders_(std::move(folders)), oom_file_(std::move(oom_file)) {
  for (const auto& folder : folders_) {
    const fs::path procs = folder / "cgroup.procs";
    entrances_.emplace_back(::open(procs.c_str(), O_WRONLY | O_CLOEXEC));
    if (!entrances_.back()) throw error_from_errno(errno, "cannot open " + procs.string());
  }
}

Cgroup::~Cgroup() {
  entrances_.clear();
  for (const auto& folder : folders_) kill_members(folder);
  for (const auto& folder : folders_) remove_group(folder);
}

std::vector<int> Cgroup::entrances() const {
  std::vector<int> result;
  for (const auto& file : entrances_) result.push_back(file.get());
  return result;
}

std::uint64_t Cgroup::oom_kills() const {
  std::istringstream counters(oom_file_.empty() ? std::string() : read_control(oom_file_));
  std::string key;
  for (std::uint64_t value = 0; counters >> key >> value;) {
    if (key == "oom_kill") return value;
  }
  return 0;
}

CgroupTree::CgroupTree() {
  try {
    find_v2();
    find_v1();
  } catch (const std::exception& error) {  // of the file system library
    obstacle_ = error.what();
  }
}

CgroupTree::~CgroupTree() {
  for (const auto& hierarchy : hierarchies_) remove_empty_groups(hierarchy->folder);
}

const CgroupTree::Hierarchy* CgroupTree::add(int version, const fs::path& folder) {
  hierarchies_.push_back(std::make_unique<Hierarchy>(Hierarchy{version, folder}));
  return hierarchies_.back().get();
}

// In version 2 only a group without processes of its own can limit its children, so the place is
// the nearest ancestor that can.
void CgroupTree::find_v2() {
  const auto mount = find_mount("cgroup2", "");
  const auto own = mount ? own_folder(*mount, "") : std::nullopt;
  if (!own) return;
  sweep(mount->point);
  for (fs::path place = *own;; place = place.parent_path()) {
    for (const char* controller : {"+memory", "+cpu"}) {
      write_control(place / "cgroup.subtree_control", controller);
    }
    const std::string offered = read_control(place / "cgroup.subtree_control");
    if (has_word(offered, "memory") && take_v2(place, has_word(offered, "cpu"))) return;
    if (place == mount->point || !place.has_relative_path()) return;
  }
}

bool CgroupTree::take_v2(const fs::path& place, bool with_cpu) {
  const fs::path group = place / group_name();
  if (!make_group(group)) return note_obstacle(group);
  const bool passed_on =
      write_control(group / "cgroup.subtree_control", with_cpu ? "+memory +cpu" : "+memory");
  if (!passed_on || !can_enter(group)) {
    note_obstacle(group);
    ::rmdir(group.c_str());
    return false;
  }
  memory_ = add(2, group);
  if (with_cpu) cpu_ = memory_;
  return true;
}

void CgroupTree::find_v1() {
  for (const std::string_view controller : {"memory", "cpu"}) {
    const Hierarchy*& slot = controller == "memory" ? memory_ : cpu_;
    const auto mount = slot == nullptr ? find_mount("cgroup", controller) : std::nullopt;
    const auto own = mount ? own_folder(*mount, controller) : std::nullopt;
    if (!own) continue;
    const fs::path group = *own / group_name();
    if (!hierarchies_.empty() && hierarchies_.back()->folder == group) {  // mounted together
      slot = hierarchies_.back().get();
      continue;
    }
    sweep(mount->point);
    if (make_group(group) && can_enter(group)) {
      slot = add(1, group);
    } else {
      note_obstacle(group);
      ::rmdir(group.c_str());
    }
  }
}

// Keeps errno's text for description(); false, for the caller to return.
bool CgroupTree::note_obstacle(const fs::path& group) {
  obstacle_ = fmt::format("{}: {}", group.string(), ::strerrordesc_np(errno));
  return false;
}

std::string CgroupTree::description() const {
  if (memory_ == nullptr && cpu_ == nullptr) {
    return "not available: " +
           (obstacle_.empty() ? "no writable cgroup with memory and cpu" : obstacle_);
  }
  std::string text = fmt::format("cgroup v{}:", hierarchies_.front()->version);
  if (memory_ != nullptr) text += " memory";
  if (cpu_ != nullptr) text += " cpu";
  return text;
}

std::unique_ptr<Cgroup> CgroupTree::create(const std::string& name,
                                           const CgroupLimits& limits) const {
  std::vector<fs::path> folders;
  for (const auto& hierarchy : hierarchies_) {
    const bool wanted = (limits.memory_bytes > 0 && hierarchy.get() == memory_) ||
                        (limits.cpus > 0 && hierarchy.get() == cpu_);
    if (!wanted) continue;
    folders.push_back(hierarchy->folder / name);
    make_group(hierarchy->folder);  // another host may have swept it while it was empty
    if (!make_group(folders.back())) {
      throw error_from_errno(errno, "cannot make " + folders.back().string());
    }
  }
  fs::path oom_file;
  if (limits.memory_bytes > 0 && memory_ != nullptr) {
    limit_memory(memory_->version, memory_->folder / name, limits.memory_bytes);
    oom_file =
        memory_->folder / name / (memory_->version == 2 ? "memory.events" : "memory.oom_control");
  }
  if (limits.cpus > 0 && cpu_ != nullptr)
    limit_cpu(cpu_->version, cpu_->folder / name, limits.cpus);
  return std::unique_ptr<Cgroup>(new Cgroup(std::move(folders), std::move(oom_file)));
}

}  // namespace funcpipe
