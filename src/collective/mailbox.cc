#include "collective/mailbox.h"

#include <cstring>

#include "base/error.h"
#include "collective/wire.h"
#include "store/wait.h"

namespace funcpipe {
namespace {

std::string_view name_of(MessageKind kind) {
  switch (kind) {
    case MessageKind::kActivation:
      return "activation";
    case MessageKind::kGradient:
      return "gradient";
    case MessageKind::kSplit:
      return "split";
    case MessageKind::kMerged:
      return "merged";
    case MessageKind::kNorm:
      return "norm";
  }
  return "message";
}

std::string place(const WorkerId& worker) {
  const auto part = [](int value) {
    return value < 0 ? std::string("all") : std::to_string(value);
  };
  return part(worker.stage) + "_" + part(worker.replica);
}

TensorBundle bundle_of(std::span<const float> values) {
  TensorBundle bundle;
  TensorView view;
  view.shape = {static_cast<std::int64_t>(values.size())};
  view.data = std::as_bytes(values);
  bundle.tensors.push_back(std::move(view));
  return bundle;
}

void copy_values(const TensorBundle& bundle, std::span<float> values, const MessageName& name) {
  if (bundle.tensors.size() != 1 || bundle.tensors[0].data.size() != values.size_bytes()) {
    fail(ErrorCode::kDataLoss, "the {} does not hold {} values", name.describe(), values.size());
  }
  if (!values.empty())
    std::memcpy(values.data(), bundle.tensors[0].data.data(), values.size_bytes());
}

}  // namespace

std::string MessageName::text() const {
  return fmt::format("{}/{}.{}.{}.{}-{}", phase == Phase::kTraining ? "m" : "e", step,
                     name_of(kind), micro_batch < 0 ? "all" : std::to_string(micro_batch),
                     place(source), place(destination));
}

std::string MessageName::describe() const {
  return fmt::format("{}{} from worker {} in {} {}", name_of(kind),
                     micro_batch < 0 ? "" : fmt::format(" of micro-batch {}", micro_batch),
                     source.text(),
                     phase == Phase::kTraining ? "step" : "the evaluation after step", step);
}

Mailbox::Mailbox(ObjectStore& store, std::string run_prefix, std::string stop_key, Clock& clock,
                 const Options& options)
    : store_(store),
      run_prefix_(std::move(run_prefix)),
      stop_key_(std::move(stop_key)),
      clock_(clock),
      options_(options) {}

Mailbox::Mailbox(ObjectStore& store, std::string run_prefix, std::string stop_key, Clock& clock)
    : Mailbox(store, std::move(run_prefix), std::move(stop_key), clock, Options{}) {}

std::string Mailbox::key(const MessageName& name) const { return run_prefix_ + "/" + name.text(); }

PutResult Mailbox::send(const MessageName& name, const TensorBundle& bundle) {
  const auto message = encode(bundle);
  return store_.put_if_absent(key(name), message.parts);
}

Buffer Mailbox::wait(const MessageName& name, Deadline deadline, std::stop_token stop) {
  const auto begin = clock_.now();
  while (true) {
    const auto look = Deadline::after(clock_, options_.stop_check).earlier(deadline);
    if (auto object =
            try_wait_for(store_, key(name), WaitOptions{options_.backoff, look, clock_, stop})) {
      return std::move(*object);
    }
    if (store_.head(stop_key_)) fail(ErrorCode::kCancelled, "the run was stopped");
    if (deadline.expired(clock_)) {
      fail(ErrorCode::kDeadlineExceeded, "the {} did not come within {}", name.describe(),
           format_duration(clock_.now() - begin));
    }
  }
}

TensorBundle Mailbox::receive(const MessageName& name, Deadline deadline, std::stop_token stop) {
  Buffer object = wait(name, deadline, std::move(stop));
  try {
    return decode(std::move(object));
  } catch (const Error& error) {
    throw error.with_context(name.describe());
  }
}

PutResult Mailbox::send_values(const MessageName& name, std::span<const float> values) {
  return send(name, bundle_of(values));
}

void Mailbox::send_or_adopt_values(const MessageName& name, std::span<float> values) {
  if (send_values(name, values) == PutResult::kStored) return;
  auto stored = store_.get(key(name));
  if (!stored)
    fail(ErrorCode::kDataLoss, "the {} was removed while its sender still needed it",
         name.describe());
  copy_values(decode(std::move(*stored)), values, name);
}

void Mailbox::receive_values(const MessageName& name, std::span<float> values, Deadline deadline,
                             std::stop_token stop) {
  copy_values(receive(name, deadline, std::move(stop)), values, name);
}

void Mailbox::remove(const MessageName& name) { store_.remove(key(name)); }

}  // namespace funcpipe
