#include "data/dataset_column.h"

#include <algorithm>
#include <utility>

#include "base/checksum.h"
#include "base/error.h"
#include "data/dataset_index.h"
#include "data/parallel.h"

namespace funcpipe {

DatasetColumn::DatasetColumn(ObjectStore& store, TensorFacts facts, std::vector<ColumnShard> shards,
                             const ColumnOptions& options)
    : store_(store),
      facts_(std::move(facts)),
      shards_(std::move(shards)),
      options_(options),
      record_bytes_(record_bytes(facts_)),
      records_(shards_.back().first + shards_.back().records),
      slots_(std::make_unique<Slot[]>(shards_.size())) {}

TensorBundle DatasetColumn::read(std::span<const std::uint32_t> records) {
  rethrow_failure();
  const auto out = std::make_shared<Buffer>(records.size() * record_bytes_);
  const auto wants = copy_kept(records, out->data());
  if (!wants.empty()) {
    run_all(plan(wants), wants, out->data());
    if (options_.keep) start_filling();
  }
  TensorView tensor;
  tensor.dtype = facts_.dtype;
  tensor.shape = facts_.shape;
  tensor.shape.insert(tensor.shape.begin(), static_cast<std::int64_t>(records.size()));
  tensor.data = out->view();
  return {{std::move(tensor)}, false, out};
}

std::size_t DatasetColumn::shard_of(std::uint32_t record) const {
  if (record >= records_) {
    fail(ErrorCode::kInvalidArgument, "record {} does not exist, the dataset has {}", record,
         records_);
  }
  const auto after =
      std::upper_bound(shards_.begin(), shards_.end(), record,
                       [](std::int64_t r, const ColumnShard& shard) { return r < shard.first; });
  return static_cast<std::size_t>(after - shards_.begin()) - 1;
}

// Copies what is in memory; returns the rest by shard and record.
std::vector<DatasetColumn::Want> DatasetColumn::copy_kept(std::span<const std::uint32_t> records,
                                                          std::byte* out) const {
  std::vector<Want> wants;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const auto shard = shard_of(records[i]);
    const auto record = records[i] - shards_[shard].first;
    if (slots_[shard].ready.load(std::memory_order_acquire)) {
      const auto* const from =
          slots_[shard].buffer.data() + static_cast<std::uint64_t>(record) * record_bytes_;
      std::memcpy(out + i * record_bytes_, from, record_bytes_);
    } else {
      wants.push_back({shard, record, i});
    }
  }
  std::sort(wants.begin(), wants.end(), [](const Want& a, const Want& b) {
    return std::pair(a.shard, a.record) < std::pair(b.shard, b.record);
  });
  return wants;
}

// Merges neighbours into requests, and the requests of a shard into one for all of it where that
// pays.
std::vector<DatasetColumn::Fetch> DatasetColumn::plan(const std::vector<Want>& wants) const {
  const auto gap = static_cast<std::int64_t>(options_.gap_bytes / record_bytes_);
  std::vector<Fetch> fetches;
  std::size_t first_of_shard = 0;  // index of the shard's first fetch
  std::int64_t needed = 0;         // records of the shard in its fetches
  const auto close_shard = [&] {
    if (fetches.empty() || !worth_whole(fetches.back().shard, needed)) return;
    auto& whole = fetches[first_of_shard];
    whole = {whole.shard, 0, shards_[whole.shard].records, whole.begin, fetches.back().end};
    fetches.resize(first_of_shard + 1);
  };
  for (std::size_t i = 0; i < wants.size(); ++i) {
    const auto& want = wants[i];
    if (fetches.empty() || fetches.back().shard != want.shard) {
      close_shard();
      first_of_shard = fetches.size();
      needed = 0;
      fetches.push_back({want.shard, want.record, want.record, i, i});
    } else if (want.record - fetches.back().last > gap) {
      fetches.push_back({want.shard, want.record, want.record, i, i});
    }
    auto& fetch = fetches.back();
    needed += want.record + 1 - fetch.last;
    fetch.last = want.record + 1;
    fetch.end = i + 1;
  }
  close_shard();
  return fetches;
}

bool DatasetColumn::worth_whole(std::size_t shard, std::int64_t needed) const {
  return options_.keep && 2 * needed >= shards_[shard].records;
}

void DatasetColumn::run_all(const std::vector<Fetch>& fetches, const std::vector<Want>& wants,
                            std::byte* out) {
  for_each_in_parallel(fetches.size(), options_.parallel_requests,
                       [&](std::size_t i) { run(fetches[i], wants, out); });
}

// Different fetches write different positions of `out`.
void DatasetColumn::run(const Fetch& fetch, const std::vector<Want>& wants, std::byte* out) {
  const bool whole = fetch.first == 0 && fetch.last == shards_[fetch.shard].records;
  auto bytes = whole ? fetch_whole(fetch.shard) : fetch_range(fetch.shard, fetch.first, fetch.last);
  for (std::size_t i = fetch.begin; i < fetch.end; ++i) {
    const auto row = static_cast<std::uint64_t>(wants[i].record - fetch.first);
    std::memcpy(out + wants[i].position * record_bytes_, bytes.data() + row * record_bytes_,
                record_bytes_);
  }
  if (whole && options_.keep) keep(fetch.shard, std::move(bytes));
}

Buffer DatasetColumn::fetch_range(std::size_t shard, std::int64_t first, std::int64_t last) {
  const auto& facts = shards_[shard];
  const ByteRange range{facts.offset + static_cast<std::uint64_t>(first) * record_bytes_,
                        static_cast<std::uint64_t>(last - first) * record_bytes_};
  auto bytes = store_.get_range(facts.key, range);
  if (!bytes) fail(ErrorCode::kDataLoss, "shard '{}' of the dataset is missing", facts.key);
  if (bytes->size() != range.length) {
    fail(ErrorCode::kDataLoss, "shard '{}' is truncated: {} bytes at offset {}, expected {}",
         facts.key, bytes->size(), range.offset, range.length);
  }
  return std::move(*bytes);
}

Buffer DatasetColumn::fetch_whole(std::size_t shard) {
  const auto& facts = shards_[shard];
  auto bytes = fetch_range(shard, 0, facts.records);
  if (const auto found = checksum(bytes.view()); found != facts.checksum) {
    fail(ErrorCode::kDataLoss, "shard '{}' is damaged: checksum {}, the index says {}", facts.key,
         to_hex(found), to_hex(facts.checksum));
  }
  return bytes;
}

void DatasetColumn::keep(std::size_t shard, Buffer buffer) {
  const std::lock_guard lock(mutex_);
  auto& slot = slots_[shard];
  if (slot.ready.load(std::memory_order_relaxed)) return;
  slot.buffer = std::move(buffer);
  slot.ready.store(true, std::memory_order_release);
}

void DatasetColumn::start_filling() {
  std::call_once(filling_, [this] {
    filler_ = std::jthread([this](const std::stop_token& stop) { fill(stop); });
  });
}

void DatasetColumn::fill(const std::stop_token& stop) {
  try {
    for (std::size_t i = 0; i < shards_.size() && !stop.stop_requested(); ++i) {
      if (!slots_[i].ready.load(std::memory_order_acquire)) keep(i, fetch_whole(i));
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    failed_.store(true, std::memory_order_release);
  }
}

void DatasetColumn::rethrow_failure() {
  if (!failed_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex_);
  std::rethrow_exception(failure_);
}

}  // namespace funcpipe
