#include "data/test_support.h"

#include <cstdio>
#include <memory>
#include <utility>

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "base/file.h"

namespace funcpipe::testing {

void expect_error(ErrorCode code, const std::vector<std::string>& words,
                  const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.code()), to_string(code)) << error.what();
    for (const auto& word : words) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos)
          << "'" << word << "' is not in: " << error.what();
    }
    return;
  }
  ADD_FAILURE() << "no error, expected " << to_string(code);
}

std::string gzip(std::string_view bytes) {
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, bytes.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string idx_file(int type, const std::vector<std::uint32_t>& shape, std::string_view data) {
  std::string file{'\0', '\0', static_cast<char>(type), static_cast<char>(shape.size())};
  for (const auto size : shape) {
    for (int shift = 24; shift >= 0; shift -= 8) file += static_cast<char>(size >> shift & 0xff);
  }
  return file.append(data);
}

Array random_array(Rng& rng, DType dtype, Shape shape) {
  const auto buffer = std::make_shared<Buffer>(byte_size(dtype, shape).value());
  for (auto& byte : buffer->span()) {
    byte = static_cast<std::byte>(dtype == DType::kBool ? rng.below(2) : rng.below(256));
  }
  Array array;
  array.view.dtype = dtype;
  array.view.shape = std::move(shape);
  array.view.data = buffer->view();
  array.owner = buffer;
  return array;
}

Buffer to_buffer(std::string_view text) { return Buffer::copy_of(as_bytes(text)); }

void write_archive(const std::filesystem::path& path,
                   const std::vector<std::pair<std::string, std::string>>& members) {
  const std::unique_ptr<archive, int (*)(archive*)> out(archive_write_new(), archive_write_free);
  ASSERT_EQ(archive_write_set_format_filter_by_ext(out.get(), path.c_str()), ARCHIVE_OK);
  ASSERT_EQ(archive_write_open_filename(out.get(), path.c_str()), ARCHIVE_OK);
  for (const auto& [name, data] : members) {
    const std::unique_ptr<archive_entry, void (*)(archive_entry*)> entry(archive_entry_new(),
                                                                         archive_entry_free);
    archive_entry_set_pathname(entry.get(), name.c_str());
    archive_entry_set_filetype(entry.get(), name.ends_with('/') ? AE_IFDIR : AE_IFREG);
    archive_entry_set_perm(entry.get(), 0644);
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(data.size()));
    ASSERT_EQ(archive_write_header(out.get(), entry.get()), ARCHIVE_OK);
    ASSERT_EQ(archive_write_data(out.get(), data.data(), data.size()),
              static_cast<la_ssize_t>(data.size()));
  }
  ASSERT_EQ(archive_write_close(out.get()), ARCHIVE_OK);
}

std::string run_python(const std::string& script, const std::vector<std::string>& arguments) {
  const TemporaryDirectory folder;
  write_file(folder.path() / "script.py", std::string_view(script));
  // LD_PRELOAD: a sanitizer's runtime is no concern of Python's.
  auto command =
      fmt::format("env -u LD_PRELOAD PYTHONDONTWRITEBYTECODE=1 PYTHONPATH={} /usr/bin/python3 {}",
                  FUNCPIPE_PYTHON_FOLDER, (folder.path() / "script.py").string());
  for (const auto& argument : arguments) command += fmt::format(" '{}'", argument);
  FILE* const pipe = ::popen(command.c_str(), "r");
  std::string output;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) output += static_cast<char>(c);
  EXPECT_EQ(::pclose(pipe), 0) << command << "\n" << output;
  return output;
}

}  // namespace funcpipe::testing
