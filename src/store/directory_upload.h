// One object on its way into a directory store.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/buffer.h"
#include "base/file.h"

namespace funcpipe {

enum class TemporaryFiles {
  kNameless,  // where the file system can, else kNamed
  kNamed,
};

// A file that nobody sees until it is placed under its path, whole. Where the file system allows it
// has no name before that (O_TMPFILE), so that a killed process leaves nothing behind; elsewhere it
// has one beginning with '.' in the same folder, which no key can have.
//
// Missing folders are made, and made again when others remove them at the same time. The functions
// throw Error that names the path; kResourceExhausted for a full disk. Not thread-safe.
class DirectoryUpload {
 public:
  // Writes the content. `parts` are borrowed for the life of the object.
  DirectoryUpload(std::string path, std::span<const ByteView> parts, TemporaryFiles kind);
  ~DirectoryUpload();
  DirectoryUpload(const DirectoryUpload&) = delete;
  DirectoryUpload& operator=(const DirectoryUpload&) = delete;

  // Each at most once, and only one of them.
  void place();            // replaces what is there
  bool place_if_absent();  // false: a file is there already

 private:
  bool open_without_name();
  void open_with_name();
  void write_parts();
  int link_to(const std::string& path);
  int link_nameless_to(const std::string& path) const;
  void give_name();
  void rewrite_with_name();
  bool cleared_of_empty_folder();
  template <typename Call>
  int with_folder(Call call);
  [[noreturn]] void fail_with(int error_number) const;

  const std::string path_;
  const std::string folder_;
  const std::span<const ByteView> parts_;
  FileDescriptor file_;         // open as long as it has no name
  std::string temporary_name_;  // its path while it has one that must go
};

// The error of an operation ("put", "get") on the file of an object.
[[noreturn]] void fail_on_object(int error_number, std::string_view action, std::string_view path);

}  // namespace funcpipe
