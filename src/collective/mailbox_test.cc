#include "collective/mailbox.h"

#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "base/error.h"
#include "store/memory_store.h"

namespace funcpipe {
namespace {

using namespace std::chrono_literals;

class MailboxTest : public testing::Test {
 protected:
  Deadline soon(Duration duration = 10s) { return Deadline::after(clock_, duration); }

  MemoryStore store_;
  SteadyClock clock_;
  Mailbox mailbox_{store_, "runs/a", "runs/a/stop", clock_};
  const MessageName name_{
      MessageName::Phase::kTraining, 7, MessageKind::kMerged, -1, {1, 0}, {1, -1}};
};

TEST_F(MailboxTest, NamesOfDifferentMessagesDiffer) {
  std::set<std::string> names;
  int count = 0;
  for (const auto phase : {MessageName::Phase::kTraining, MessageName::Phase::kEvaluation}) {
    for (const std::int64_t step : {1, 11}) {
      for (const auto kind : {MessageKind::kActivation, MessageKind::kGradient, MessageKind::kSplit,
                              MessageKind::kMerged}) {
        for (const int micro_batch : {-1, 1, 11, 111}) {
          for (const WorkerId source : {WorkerId{1, 11}, WorkerId{11, 1}, WorkerId{1, 1}}) {
            for (const WorkerId destination : {WorkerId{1, 23}, WorkerId{12, 3}, WorkerId{1, -1}}) {
              names.insert(MessageName{phase, step, kind, micro_batch, source, destination}.text());
              ++count;
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(count));
}

TEST_F(MailboxTest, ReceiverWaitsForTheSender) {
  std::jthread sender([&] {
    std::this_thread::sleep_for(20ms);
    mailbox_.send_values(name_, std::vector<float>{1, 2, 3});
  });
  std::vector<float> got(3);
  mailbox_.receive_values(name_, got, soon(), {});
  EXPECT_EQ(got, (std::vector<float>{1, 2, 3}));
}

TEST_F(MailboxTest, TheStoredMessageWinsAndIsAdopted) {
  std::vector<float> first = {1, 2};
  std::vector<float> second = {9, 9};
  mailbox_.send_or_adopt_values(name_, first);
  mailbox_.send_or_adopt_values(name_, second);
  EXPECT_EQ(second, first);
  EXPECT_EQ(mailbox_.send_values(name_, std::vector<float>{7, 7}), PutResult::kAlreadyThere);
  std::vector<float> got(2);
  mailbox_.receive_values(name_, got, soon(), {});
  EXPECT_EQ(got, first);
}

TEST_F(MailboxTest, AWaitEndsAtItsDeadlineAndSaysForWhat) {
  std::vector<float> got(1);
  try {
    mailbox_.receive_values(name_, got, soon(30ms), {});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
    EXPECT_NE(std::string(error.what()).find("merged from worker 1.0 in step 7"), std::string::npos)
        << error.what();
  }
}

TEST_F(MailboxTest, AWaitEndsWhenTheRunIsStopped) {
  Mailbox::Options options;
  options.stop_check = 10ms;
  Mailbox mailbox(store_, "runs/a", "runs/a/stop", clock_, options);
  put(store_, "runs/a/stop", as_bytes("x"));
  std::vector<float> got(1);
  try {
    mailbox.receive_values(name_, got, soon(), {});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCancelled);
  }
}

TEST_F(MailboxTest, AWaitEndsOnStopRequest) {
  std::stop_source stop;
  std::jthread stopper([&] {
    std::this_thread::sleep_for(20ms);
    stop.request_stop();
  });
  std::vector<float> got(1);
  const auto begin = clock_.now();
  EXPECT_THROW(mailbox_.receive_values(name_, got, soon(), stop.get_token()), Error);
  EXPECT_LT(clock_.now() - begin, 5s);
}

TEST_F(MailboxTest, WrongLengthAndDamageAreDataLoss) {
  mailbox_.send_values(name_, std::vector<float>{1, 2});
  std::vector<float> got(3);
  const auto code_of_receive = [&] {
    try {
      mailbox_.receive_values(name_, got, soon(), {});
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kInternal;
  };
  EXPECT_EQ(code_of_receive(), ErrorCode::kDataLoss);
  put(store_, "runs/a/" + name_.text(), as_bytes("garbage"));
  EXPECT_EQ(code_of_receive(), ErrorCode::kDataLoss);
}

}  // namespace
}  // namespace funcpipe
