// What every store promises, checked on every backend and through every stack of decorators.
#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "store/counting_store.h"
#include "store/directory_store.h"
#include "store/fault_store.h"
#include "store/memory_store.h"
#include "store/prefixed_store.h"
#include "store/retrying_store.h"
#include "store/testing_store.h"
#include "store/throttled_store.h"

namespace funcpipe::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// What a store under test stands on; outlives it.
struct Ground {
  TemporaryDirectory folder;
  SteadyClock clock;
  UsageCounter counter;
  FunctionLinks links{2e9, 2e9, 20us, clock};
};

using Stores = std::unique_ptr<ObjectStore>;
struct Stack {
  const char* name;
  Stores (*make)(Ground& ground);
};

Stores directory(Ground& ground) { return std::make_unique<DirectoryStore>(ground.folder.path()); }

Stores directory_with_names(Ground& ground) {
  return std::make_unique<DirectoryStore>(ground.folder.path(), TemporaryFiles::kNamed);
}

Stores memory(Ground&) { return std::make_unique<MemoryStore>(); }

Stores prefixed(Ground& ground) {
  return std::make_unique<PrefixedStore>(directory(ground), "in/x");
}

Stores throttled(Ground& ground) {
  auto store = std::make_unique<ThrottledStore>(std::make_unique<MemoryStore>(), ground.links);
  return std::make_unique<CountingStore>(std::move(store), ground.counter);
}

Stores retrying(Ground& ground) {
  auto faults = FaultOptions::for_all({0.1, 0.1, 0.1, 10us}, 7);
  faults.remove.lost = 0;  // a remove that is repeated may give false
  auto faulty = std::make_unique<FaultStore>(directory(ground), faults, ground.clock);
  RetryOptions options;
  options.backoff = {1us, 10us, 2, 1};
  options.most_tries = 50;
  return std::make_unique<RetryingStore>(std::move(faulty), options, ground.clock);
}

class ContractTest : public ::testing::TestWithParam<Stack> {
 protected:
  Ground ground_;
  const Stores owner_ = GetParam().make(ground_);
  ObjectStore& store_ = *owner_;
};

INSTANTIATE_TEST_SUITE_P(Stores, ContractTest,
                         ::testing::Values(Stack{"Directory", directory},
                                           Stack{"DirectoryWithNames", directory_with_names},
                                           Stack{"Memory", memory},
                                           Stack{"PrefixedDirectory", prefixed},
                                           Stack{"CountingThrottledMemory", throttled},
                                           Stack{"RetryingFaultyDirectory", retrying}),
                         [](const auto& suite) { return std::string(suite.param.name); });

TEST_P(ContractTest, WhatWasPutIsThere) {
  put_text(store_, "a/b/c", "hello");
  EXPECT_EQ(get_text(store_, "a/b/c"), "hello");
  const auto info = store_.head("a/b/c");
  ASSERT_TRUE(info);
  EXPECT_EQ(info->key, "a/b/c");
  EXPECT_EQ(info->size, 5U);
}

TEST_P(ContractTest, WhatIsMissingIsNoError) {
  put_text(store_, "a/b", "x");
  for (const auto* key : {"z", "a", "a/c", "a/b/c", "z/z/z"}) {
    EXPECT_FALSE(store_.get(key)) << key;
    EXPECT_FALSE(store_.get_range(key, {0, 1})) << key;
    EXPECT_FALSE(store_.head(key)) << key;
    EXPECT_FALSE(store_.remove(key)) << key;
  }
  EXPECT_EQ(get_text(store_, "a/b"), "x");
}

TEST_P(ContractTest, PutReplaces) {
  put_text(store_, "k", "a long first content");
  put_text(store_, "k", "second");
  EXPECT_EQ(get_text(store_, "k"), "second");
  put_text(store_, "k", "");
  EXPECT_EQ(get_text(store_, "k"), "");
}

TEST_P(ContractTest, PartsAreJoinedInOrder) {
  std::string expected;
  std::vector<std::string> texts;
  for (int i = 0; i < 3000; ++i)
    texts.push_back(std::string(static_cast<std::size_t>(i % 7), 'a' + i % 26));
  std::vector<ByteView> parts;
  for (const auto& text : texts) {
    parts.push_back(as_bytes(text));
    expected += text;
  }
  store_.put("k", parts);
  EXPECT_EQ(get_text(store_, "k"), expected);
  EXPECT_EQ(store_.put_if_absent("l", parts), PutResult::kStored);
  EXPECT_EQ(get_text(store_, "l"), expected);
}

TEST_P(ContractTest, EmptyObjectsAreObjects) {
  store_.put("none", {});
  EXPECT_EQ(put_if_absent(store_, "empty", {}), PutResult::kStored);
  EXPECT_EQ(put_if_absent(store_, "empty", as_bytes("x")), PutResult::kAlreadyThere);
  for (const auto* key : {"none", "empty"}) {
    EXPECT_EQ(get_text(store_, key), "");
    EXPECT_EQ(text_of(store_.get_range(key, {0, 10})), "");
    EXPECT_EQ(store_.head(key).value().size, 0U);
  }
  EXPECT_THAT(keys_of(list_all(store_, "")), ElementsAre("empty", "none"));
}

TEST_P(ContractTest, LargeObjectsComeBackWhole) {
  const auto bytes = random_bytes(5'000'001, 1);
  const std::vector<ByteView> parts = {bytes.view().first(3),
                                       bytes.view().subspan(3, 4'000'000),
                                       {},
                                       bytes.view().subspan(4'000'003)};
  store_.put("big", parts);
  EXPECT_EQ(store_.get("big").value().text(), bytes.text());
  EXPECT_EQ(store_.get_range("big", {4'000'000, 7}).value().text(),
            bytes.text().substr(4'000'000, 7));
}

TEST_P(ContractTest, RangesEndWithTheObject) {
  constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
  put_text(store_, "k", "0123456789");
  const auto range = [&](std::uint64_t offset, std::uint64_t length) {
    return text_of(store_.get_range("k", {offset, length}));
  };
  EXPECT_EQ(range(0, 10), "0123456789");
  EXPECT_EQ(range(3, 4), "3456");
  EXPECT_EQ(range(3, 0), "");
  EXPECT_EQ(range(8, 100), "89");
  EXPECT_EQ(range(10, 1), "");
  EXPECT_EQ(range(1000, 1000), "");
  EXPECT_EQ(range(5, kMost), "56789");
  EXPECT_EQ(range(kMost, kMost), "");
}

TEST_P(ContractTest, PutIfAbsentKeepsTheFirst) {
  EXPECT_EQ(put_if_absent(store_, "a/k", as_bytes("first")), PutResult::kStored);
  EXPECT_EQ(put_if_absent(store_, "a/k", as_bytes("second")), PutResult::kAlreadyThere);
  EXPECT_EQ(get_text(store_, "a/k"), "first");
  put_text(store_, "a/k", "third");
  EXPECT_EQ(put_if_absent(store_, "a/k", as_bytes("fourth")), PutResult::kAlreadyThere);
  EXPECT_EQ(get_text(store_, "a/k"), "third");
  EXPECT_TRUE(store_.remove("a/k"));
  EXPECT_EQ(put_if_absent(store_, "a/k", as_bytes("fifth")), PutResult::kStored);
  EXPECT_EQ(get_text(store_, "a/k"), "fifth");
}

TEST_P(ContractTest, AKeyCanBecomeAFolderOnceItsObjectIsRemoved) {
  put_text(store_, "a", "object");
  store_.remove("a");
  put_text(store_, "a/b/c", "below");
  store_.remove("a/b/c");
  EXPECT_FALSE(store_.head("a/b/c"));
  EXPECT_EQ(put_if_absent(store_, "a/b", as_bytes("object")), PutResult::kStored);
  store_.remove("a/b");
  put_text(store_, "a", "object again");
  EXPECT_EQ(get_text(store_, "a"), "object again");
}

TEST_P(ContractTest, KeysAreInByteOrder) {
  const std::vector<std::string> sorted = {"A",    "a b",       "a!/x", "a-b", "a.b", "a/b",
                                           "a/b!", "a/b/c.0-1", "a0",   "a~",  "b"};
  auto keys = sorted;
  keys.erase(std::find(keys.begin(), keys.end(), "a/b"));  // a folder of another key
  auto shuffled = keys;
  std::reverse(shuffled.begin(), shuffled.end());
  for (const auto& key : shuffled) put_text(store_, key, key);
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(keys_of(list_all(store_, "")), keys);
  for (const auto& key : keys) EXPECT_EQ(get_text(store_, key), key);
}

TEST_P(ContractTest, ListFindsByPrefix) {
  for (const auto* key : {"run/1/m/a", "run/1/m/b", "run/1/x", "run/10/m/a", "run/2", "other"}) {
    put_text(store_, key, "four");
  }
  EXPECT_THAT(keys_of(list_all(store_, "run/1/")),
              ElementsAre("run/1/m/a", "run/1/m/b", "run/1/x"));
  EXPECT_THAT(keys_of(list_all(store_, "run/1")),
              ElementsAre("run/1/m/a", "run/1/m/b", "run/1/x", "run/10/m/a"));
  EXPECT_THAT(keys_of(list_all(store_, "run/1/m/b")), ElementsAre("run/1/m/b"));
  EXPECT_THAT(keys_of(list_all(store_, "o")), ElementsAre("other"));
  EXPECT_THAT(list_all(store_, "run/3/"), IsEmpty());
  EXPECT_THAT(list_all(store_, "other/"), IsEmpty());
  EXPECT_EQ(list_all(store_, "run/2").at(0).size, 4U);
}

TEST_P(ContractTest, PagesOfAnySizeGiveTheSameList) {
  Rng rng(3);
  std::set<std::string> keys;
  while (keys.size() < 60) {
    keys.insert(fmt::format("p{}/{}{}/k{}", rng.below(3), rng.below(2) ? "-" : "", rng.below(4),
                            rng.below(50)));
  }
  for (const auto& key : keys) put_text(store_, key, "x");
  const std::vector<std::string> expected(keys.begin(), keys.end());
  for (const std::size_t limit : {1, 2, 7, 59, 60, 61}) {
    std::vector<std::string> found;
    std::string after;
    do {
      const auto page = store_.list("p", after, limit);
      EXPECT_LE(page.objects.size(), limit);
      for (const auto& object : page.objects) found.push_back(object.key);
      after = page.next;
    } while (!after.empty());
    EXPECT_EQ(found, expected) << limit;
  }
}

TEST_P(ContractTest, ListStartsAfterAnyText) {
  for (const auto* key : {"a/1", "a/2", "b/1", "c"}) put_text(store_, key, "x");
  const auto after = [&](std::string_view text) {
    return keys_of(store_.list("", text, 10).objects);
  };
  EXPECT_THAT(after("a"), ElementsAre("a/1", "a/2", "b/1", "c"));
  EXPECT_THAT(after("a/"), ElementsAre("a/1", "a/2", "b/1", "c"));
  EXPECT_THAT(after("a/1"), ElementsAre("a/2", "b/1", "c"));
  EXPECT_THAT(after("a/3"), ElementsAre("b/1", "c"));
  EXPECT_THAT(after("a~"), ElementsAre("b/1", "c"));
  EXPECT_THAT(after("c"), IsEmpty());
  EXPECT_THAT(keys_of(store_.list("b", "a/2", 10).objects), ElementsAre("b/1"));
  EXPECT_THAT(store_.list("a/", "b", 10).objects, IsEmpty());
}

TEST_P(ContractTest, RemovedObjectsAreGone) {
  for (const auto* key : {"a/b/c", "a/b/d", "e"}) put_text(store_, key, "x");
  EXPECT_TRUE(store_.remove("a/b/c"));
  EXPECT_FALSE(store_.get("a/b/c"));
  EXPECT_THAT(keys_of(list_all(store_, "")), ElementsAre("a/b/d", "e"));
  EXPECT_TRUE(store_.remove("a/b/d"));
  EXPECT_TRUE(store_.remove("e"));
  EXPECT_THAT(list_all(store_, ""), IsEmpty());
}

TEST_P(ContractTest, BadKeysAreRefusedByEveryCall) {
  for (const std::string key :
       {"", "/a", "a/", "a//b", "..", "a/../b", ".hidden", "a/.b", "\xc3\xa4", "a\nb", "a\x7f"}) {
    const std::vector<std::function<void()>> calls = {
        [&] { put_text(store_, key, "x"); },
        [&] { put_if_absent(store_, key, as_bytes("x")); },
        [&] { store_.get(key); },
        [&] {
          store_.get_range(key, {0, 1});
        },
        [&] { store_.head(key); },
        [&] { store_.remove(key); }};
    for (const auto& call : calls) {
      try {
        call();
        ADD_FAILURE() << key;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << error.what();
      }
    }
  }
  EXPECT_THROW(store_.list("../", "", 10), Error);
  EXPECT_THROW(store_.list("a//", "", 10), Error);
  EXPECT_THROW(store_.list("", "", 0), Error);
  EXPECT_THAT(list_all(store_, ""), IsEmpty());
}

TEST_P(ContractTest, OneOfManyWritersWins) {
  constexpr int kRounds = 60;
  constexpr int kThreads = 8;
  std::vector<std::atomic<int>> winner(kRounds);
  std::vector<std::atomic<int>> wins(kRounds);
  {
    std::vector<std::jthread> threads;
    for (int t = 1; t <= kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int round = 0; round < kRounds; ++round) {
          const auto text = fmt::format("writer {}", t);
          const auto key = fmt::format("r/{}/x", round);
          if (put_if_absent(store_, key, as_bytes(text)) == PutResult::kStored) {
            ++wins[static_cast<std::size_t>(round)];
            winner[static_cast<std::size_t>(round)] = t;
          }
          EXPECT_TRUE(store_.get(key));
        }
      });
    }
  }
  for (std::size_t round = 0; round < kRounds; ++round) {
    EXPECT_EQ(wins[round], 1) << round;
    EXPECT_EQ(get_text(store_, fmt::format("r/{}/x", round)),
              fmt::format("writer {}", winner[round].load()));
  }
}

TEST_P(ContractTest, ReadersNeverSeeAMixture) {
  constexpr std::size_t kSize = 40'000;
  const auto content = [](char c) { return std::string(kSize + static_cast<std::size_t>(c), c); };
  put_text(store_, "k", content('a'));
  std::atomic<bool> done{false};
  std::vector<std::jthread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!done) {
        const auto object = store_.get("k");
        ASSERT_TRUE(object);
        ASSERT_FALSE(object->empty());
        ASSERT_EQ(object->text(), content(object->text()[0]));
      }
    });
  }
  {
    std::vector<std::jthread> writers;
    for (const char first : {'a', 'n'}) {
      writers.emplace_back([&, first] {
        for (int i = 0; i < 100; ++i)
          put_text(store_, "k", content(static_cast<char>(first + i % 13)));
      });
    }
  }
  done = true;
}

TEST_P(ContractTest, PutsAndRemovesInOneFolderDoNotDisturbEachOther) {
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 150; ++i) {
        const auto key = fmt::format("deep/er/{}/{}", i % 2, t);
        const auto text = fmt::format("{} {}", t, i);
        if (i % 3 == 0) {
          EXPECT_EQ(put_if_absent(store_, key, as_bytes(text)), PutResult::kStored);
        } else {
          put_text(store_, key, text);
        }
        EXPECT_EQ(get_text(store_, key), text);
        store_.remove(key);
        EXPECT_FALSE(store_.head(key));
      }
    });
  }
  threads.clear();
  EXPECT_THAT(list_all(store_, ""), IsEmpty());
}

}  // namespace
}  // namespace funcpipe::testing
