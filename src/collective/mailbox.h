// Messages between workers of one run, left in the store under write-once keys.
#pragma once

#include <cstdint>
#include <span>
#include <stop_token>
#include <string>

#include "base/backoff.h"
#include "base/clock.h"
#include "core/plan.h"
#include "core/tensor.h"
#include "store/object_store.h"

namespace funcpipe {

enum class MessageKind { kActivation, kGradient, kSplit, kMerged, kNorm };

// Names a message completely: no two different messages of a run have equal names.
struct MessageName {
  enum class Phase { kTraining, kEvaluation };
  Phase phase = Phase::kTraining;
  std::int64_t step = 0;
  MessageKind kind = MessageKind::kActivation;
  int micro_batch = -1;
  WorkerId source;
  WorkerId destination;  // a replica of -1: all replicas of the stage; a stage of -1: all stages
  // "m/12.activation.3.0_1-1_1": step 12, micro-batch 3, from worker 0.1 to worker 1.1; evaluation
  // has "e/" in front.
  std::string text() const;
  // "activation of micro-batch 3 from worker 0.1 in step 12"
  std::string describe() const;
};

// Invariant: a message is put only if absent. If one is there already, the stored one wins: whoever
// needs its own copy of what it sent (a reduced split) adopts the stored bytes. Thread-safe, as the
// store is.
class Mailbox {
 public:
  struct Options {
    BackoffOptions backoff{std::chrono::microseconds(200), std::chrono::milliseconds(20), 1.5, 0};
    Duration stop_check =
        std::chrono::seconds(5);  // while waiting, how often to look whether the run was stopped
  };

  // `stop_key`: an object whose existence ends every wait with Error(kCancelled).
  Mailbox(ObjectStore& store, std::string run_prefix, std::string stop_key, Clock& clock,
          const Options& options);
  Mailbox(ObjectStore& store, std::string run_prefix, std::string stop_key, Clock& clock);

  // kAlreadyThere: another attempt sent it before; that one counts.
  PutResult send(const MessageName& name, const TensorBundle& bundle);
  // Waits for the message. Throws Error(kDeadlineExceeded) naming what was missing, kCancelled, or
  // kDataLoss.
  TensorBundle receive(const MessageName& name, Deadline deadline, std::stop_token stop);

  // The same for plain runs of floats; receive_values fills `values` and throws kDataLoss for
  // another length. send_or_adopt_values overwrites `values` with the stored ones if the message
  // was there already: for what the sender goes on using itself.
  PutResult send_values(const MessageName& name, std::span<const float> values);
  void send_or_adopt_values(const MessageName& name, std::span<float> values);
  void receive_values(const MessageName& name, std::span<float> values, Deadline deadline,
                      std::stop_token stop);

  // Forgets a message that nobody will read again.
  void remove(const MessageName& name);

 private:
  std::string key(const MessageName& name) const;
  Buffer wait(const MessageName& name, Deadline deadline, std::stop_token stop);

  ObjectStore& store_;
  const std::string run_prefix_;
  const std::string stop_key_;
  Clock& clock_;
  const Options options_;
};

}  // namespace funcpipe
