#include "data/import.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "data/dataset.h"
#include "data/recording_store.h"
#include "data/safetensors.h"
#include "data/test_support.h"

namespace funcpipe {
namespace {

using testing::expect_error;
using testing::gzip;
using testing::idx_file;
using testing::RecordingStore;
using Members = std::vector<std::pair<std::string, std::string>>;

std::string pixels(std::size_t count, std::size_t salt) {
  std::string data(count, '\0');
  for (std::size_t i = 0; i < count; ++i) data[i] = static_cast<char>(i * 7 + salt);
  return data;
}

// A tiny MNIST: 6 training and 3 test images of 2x3.
const std::string kTrainImages = idx_file(8, {6, 2, 3}, pixels(36, 1));
const std::string kTrainLabels = idx_file(8, {6}, std::string("\0\1\2\3\4\5", 6));
const std::string kTestImages = idx_file(8, {3, 2, 3}, pixels(18, 2));
const std::string kTestLabels = idx_file(8, {3}, std::string("\5\0\1", 3));

Members mnist_files(const std::string& folder) {
  return {{folder + "train-images-idx3-ubyte", kTrainImages},
          {folder + "train-labels-idx1-ubyte", kTrainLabels},
          {folder + "t10k-images-idx3-ubyte", kTestImages},
          {folder + "t10k-labels-idx1-ubyte", kTestLabels}};
}

class Import : public ::testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, std::string_view content) const {
    write_file(folder_.path() / name, content);
    return folder_.path() / name;
  }
  void write(const Members& members) const {
    for (const auto& [name, content] : members) write(name, content);
  }
  void expect_tiny_mnist(const std::vector<ImportResult>& results) {
    ASSERT_EQ(results.size(), 2U);
    EXPECT_EQ(results[0].prefix, "m/train");
    EXPECT_EQ(results[0].index.records, 6);
    EXPECT_EQ(results[0].index.classes, 6);
    EXPECT_EQ(results[1].prefix, "m/test");
    Dataset test(store_, "m/test");
    EXPECT_EQ(test.input().shape, (Shape{1, 2, 3}));
    const auto images = test.read_inputs(std::vector<std::uint32_t>{0, 1, 2});
    EXPECT_EQ(as_text(images.tensors[0].data), pixels(18, 2));
    const auto labels = test.read_targets(std::vector<std::uint32_t>{2, 0});
    EXPECT_EQ(as_text(labels.tensors[0].data), std::string_view("\1\5"));
  }

  TemporaryDirectory folder_;
  RecordingStore store_;
};

TEST_F(Import, MnistFromAFolder) {
  write(mnist_files(""));
  expect_tiny_mnist(import_mnist(folder_.path(), store_, "m", {}));
}

TEST_F(Import, MnistFromSubFoldersGzippedAndWithTheOtherSpelling) {
  write({{"raw/a/train-images.idx3-ubyte.gz", gzip(kTrainImages)},
         {"raw/a/train-labels.idx1-ubyte.gz", gzip(kTrainLabels)},
         {"raw/b/t10k-images-idx3-ubyte.gz", gzip(kTestImages)},
         {"raw/b/t10k-labels-idx1-ubyte", kTestLabels},
         {"raw/b/t10k-labels-idx1-ubyte.gz", "broken, and not needed"},
         {"raw/README", "text"}});
  expect_tiny_mnist(import_mnist(folder_.path(), store_, "m", {}));
}

TEST_F(Import, MnistFromArchives) {
  for (const auto* name : {"m.tar", "m.tgz", "m.zip"}) {
    testing::write_archive(folder_.path() / name, mnist_files("package/data/"));
    expect_tiny_mnist(import_mnist(folder_.path() / name, store_, "m", {}));
  }
}

TEST_F(Import, MnistOutermostFileIsTakenAndATieIsAnError) {
  auto files = mnist_files("");
  files.emplace_back("copy/train-images-idx3-ubyte", "not looked at");
  write(files);
  expect_tiny_mnist(import_mnist(folder_.path(), store_, "m", {}));

  std::filesystem::remove(folder_.path() / "train-images-idx3-ubyte");
  write("other/train-images-idx3-ubyte", kTrainImages);
  expect_error(ErrorCode::kInvalidArgument, {"copy/train-images", "other/train-images"},
               [&] { import_mnist(folder_.path(), store_, "m", {}); });
}

TEST_F(Import, MnistErrorsNameTheSourceAndWriteNothing) {
  expect_error(ErrorCode::kNotFound, {"nowhere"},
               [&] { import_mnist("/nowhere", store_, "m", {}); });
  auto files = mnist_files("");
  files.pop_back();
  write(files);
  expect_error(ErrorCode::kNotFound, {"there is no t10k-labels-idx1-ubyte (plain or .gz)"},
               [&] { import_mnist(folder_.path(), store_, "m", {}); });
  write("t10k-labels-idx1-ubyte", kTestLabels.substr(0, 10));
  expect_error(ErrorCode::kDataLoss, {"t10k-labels-idx1-ubyte", "truncated", "3 bytes", "has 2"},
               [&] { import_mnist(folder_.path(), store_, "m", {}); });
  const auto text = write("file.txt", "text");
  expect_error(ErrorCode::kInvalidArgument, {"file.txt", "archive"},
               [&] { import_mnist(text, store_, "m", {}); });
  EXPECT_TRUE(store_.keys().empty());
}

TEST_F(Import, LabelsOutOfRangeNameFilesRecordAndValue) {
  write(mnist_files(""));
  expect_error(ErrorCode::kInvalidArgument,
               {folder_.path().string(), "train-labels", "record 4", "label 4", "0 to 3"},
               [&] { import_mnist(folder_.path(), store_, "m", {.name = "", .classes = 4}); });
}

TEST_F(Import, AnyPairOfFormats) {
  const auto images = write("i.idx.gz", gzip(kTrainImages));
  const auto labels = write("l", kTrainLabels);
  const auto result = import_pair(images, labels, store_, "p", {.name = "pair"});
  EXPECT_EQ(result.index.name, "pair");
  EXPECT_EQ(result.index.input.shape, (Shape{1, 2, 3}));

  testing::run_python(
      "import sys, numpy\n"
      "numpy.save(sys.argv[1], numpy.arange(36, dtype='float32').reshape(6, 2, 3))",
      {(folder_.path() / "x.npy").string()});
  const auto mixed = import_pair(folder_.path() / "x.npy", labels, store_, "q", {});
  EXPECT_EQ(mixed.index.name, "x");
  EXPECT_EQ(mixed.index.input.dtype, DType::kFloat32);
  EXPECT_EQ(mixed.index.input.shape, (Shape{2, 3})) << "only IDX images get a channel";
}

TEST_F(Import, SafetensorsByKey) {
  Rng rng(1);
  const auto x = testing::random_array(rng, DType::kFloat32, {4, 3});
  const auto y = testing::random_array(rng, DType::kUInt8, {4});
  const auto both = folder_.path() / "both.safetensors";
  write_file(both, write_safetensors(std::vector<NamedTensor>{{"x", x.view}, {"y", y.view}}).parts);
  const auto result =
      import_pair(both, both, store_, "p", {.name = "", .inputs_key = "x", .targets_key = "y"});
  EXPECT_EQ(result.index.input.shape, Shape{3});
  EXPECT_EQ(result.index.target.shape, Shape{});
  expect_error(ErrorCode::kNotFound, {"both.safetensors", "'input'", "x, y"},
               [&] { import_pair(both, both, store_, "q", {}); });

  const auto one = folder_.path() / "one.safetensors";
  write_file(one, write_safetensors(std::vector<NamedTensor>{{"anything", y.view}}).parts);
  EXPECT_EQ(import_pair(one, one, store_, "r", {}).index.records, 4)
      << "a single tensor needs no key";
}

TEST_F(Import, PairErrorsNameTheFiles) {
  const auto images = write("images", kTrainImages);
  const auto labels = write("labels", kTestLabels);
  expect_error(ErrorCode::kInvalidArgument, {"images with", "labels", "6 inputs but 3 targets"},
               [&] { import_pair(images, labels, store_, "p", {}); });
  expect_error(ErrorCode::kNotFound, {"nofile"},
               [&] { import_pair(images, "/nofile", store_, "p", {}); });
  const auto text = write("text", "some text that is not an array");
  expect_error(ErrorCode::kInvalidArgument, {"text", "unknown format"},
               [&] { import_pair(images, text, store_, "p", {}); });
}

}  // namespace
}  // namespace funcpipe
