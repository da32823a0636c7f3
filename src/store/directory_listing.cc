#include "store/directory_listing.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/error.h"

namespace funcpipe {
namespace fs = std::filesystem;
namespace {

// Gone, or replaced by something of another kind, since its name was read.
bool is_gone(const std::error_code& error) {
  return error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory;
}

class Listing {
 public:
  Listing(const std::string& root, std::string_view prefix, std::string_view after,
          std::size_t limit)
      : root_(root), prefix_(prefix), after_(after), limit_(limit) {}

  // Adds what lies in the folder whose keys begin with `base` ("" or "a/b/").
  void visit(const std::string& base) {
    for (const auto& name : sorted_names(base)) {
      if (objects_.size() > limit_) return;
      if (name.ends_with('/')) {
        visit(base + name);
      } else {
        add(base + name);
      }
    }
  }

  std::vector<ObjectInfo> take() { return std::move(objects_); }

 private:
  std::string path_of(std::string_view key) const { return fmt::format("{}/{}", root_, key); }

  // The names of a folder's files and, with a '/' at the end, folders that matter, in the order of
  // their keys: the '/' puts a folder where its keys belong among those of its siblings.
  std::vector<std::string> sorted_names(const std::string& base) const {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator entry(path_of(base), error), end; !error && entry != end;
         entry.increment(error)) {
      auto name = entry->path().filename().string();
      if (!is_key(base + name)) continue;
      std::error_code ignored;
      const bool is_folder = entry->is_directory(ignored);
      if (is_folder) name += '/';
      if (matters(base + name, is_folder)) names.push_back(std::move(name));
    }
    if (error && !is_gone(error))
      throw error_from_errno(error.value(), "cannot list " + path_of(base));
    std::sort(names.begin(), names.end());
    return names;
  }

  bool matters(std::string_view key, bool is_folder) const {
    if (!key.starts_with(prefix_)) return false;
    // Keys in a folder may be greater than `after` though the folder's own name is not.
    return key > after_ || (is_folder && after_.starts_with(key));
  }

  void add(std::string key) {
    std::error_code error;
    const auto size = fs::file_size(path_of(key), error);  // an error for all but regular files
    if (!error) objects_.push_back({std::move(key), size});
  }

  const std::string& root_;
  const std::string_view prefix_;
  const std::string_view after_;
  const std::size_t limit_;
  std::vector<ObjectInfo> objects_;
};

}  // namespace

std::vector<ObjectInfo> list_directory(const std::string& root, std::string_view prefix,
                                       std::string_view after, std::size_t limit) {
  Listing listing(root, prefix, after, limit);
  listing.visit(std::string(prefix.substr(0, prefix.rfind('/') + 1)));
  return listing.take();
}

}  // namespace funcpipe
