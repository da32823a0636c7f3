#include "cli/process_start.h"

#include <ctime>
#include <filesystem>
#include <sstream>

#include <unistd.h>

#include "base/file.h"

namespace funcpipe {

Duration process_age() {
  // Field 22 of /proc/self/stat, counted from behind the command's closing parenthesis (proc(5)).
  const auto stat = read_text_file("/proc/self/stat");
  std::istringstream fields(stat.substr(stat.rfind(')') + 2));
  std::string skipped;
  for (int field = 3; field < 22; ++field) fields >> skipped;
  double start_ticks = 0;
  fields >> start_ticks;
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  const double age = static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 -
                     start_ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
  return from_seconds(age);
}

std::string executable_path() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

}  // namespace funcpipe
