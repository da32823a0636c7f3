#include "store/object_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "store/forwarding_store.h"
#include "store/memory_store.h"
#include "store/testing_store.h"

namespace funcpipe::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string complaint_of(void (*check)(std::string_view), std::string_view text) {
  try {
    check(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "none";
}

TEST(KeyTest, PrintableAsciiInPartsIsAKey) {
  const std::vector<std::string> keys = {"a", "runs/7/m/12/activation.3.0-1_1-1",
                                         "with space/~!@#$%^&*()[]{}'\"\\", "a./b..c",
                                         std::string(200, 'x') + "/" + std::string(200, 'y')};
  for (const auto& key : keys) {
    EXPECT_EQ(complaint_of(check_key, key), "none");
    EXPECT_TRUE(is_key(key)) << key;
  }
}

TEST(KeyTest, TheComplaintSaysWhatIsWrong) {
  EXPECT_THAT(complaint_of(check_key, ""), HasSubstr("empty part"));
  EXPECT_THAT(complaint_of(check_key, "a//b"),
              HasSubstr("'a//b' cannot be a key of an object store: it has an empty part"));
  EXPECT_THAT(complaint_of(check_key, "a/"), HasSubstr("empty part"));
  EXPECT_THAT(complaint_of(check_key, "a/../b"), HasSubstr("begins with '.'"));
  EXPECT_THAT(complaint_of(check_key, ".tmp"), HasSubstr("begins with '.'"));
  EXPECT_THAT(complaint_of(check_key, "a\x1b[2J"), HasSubstr("'a?[2J'"));
  EXPECT_THAT(complaint_of(check_key,
                           "stra\xc3\x9f"
                           "e"),
              HasSubstr("printable ASCII"));
  EXPECT_THAT(complaint_of(check_key, std::string(201, 'x')), HasSubstr("200 bytes"));
  std::string deep = "x";
  while (deep.size() <= 1024) deep += "/xxxxxxx";
  EXPECT_THAT(complaint_of(check_key, deep), HasSubstr("1024 bytes"));
}

TEST(KeyTest, APrefixMayEndAnywhere) {
  for (const auto* prefix : {"", "a", "a/", "a/b", "a/b/"})
    EXPECT_EQ(complaint_of(check_prefix, prefix), "none");
  for (const auto* prefix : {"/", "a//", ".", "../", "a/.", "\xc3"})
    EXPECT_NE(complaint_of(check_prefix, prefix), "none");
}

// Gives short pages, as remote stores do.
class ShortPages : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  ListPage list(std::string_view prefix, std::string_view after, std::size_t) override {
    return base_.list(prefix, after, 2);
  }
};

TEST(ListAllTest, FollowsPagesToTheEnd) {
  MemoryStore memory;
  ShortPages store(memory);
  EXPECT_TRUE(list_all(store, "").empty());
  for (const auto* key : {"a", "b", "c", "d", "e"}) put_text(memory, key, "x");
  EXPECT_THAT(keys_of(list_all(store, "")), ElementsAre("a", "b", "c", "d", "e"));
}

}  // namespace
}  // namespace funcpipe::testing
