// Reads records of one column (inputs or targets) of a dataset from its shards.
//
// How: what is in memory is copied from there. The rest of a request becomes range reads,
// neighbours merged, several in flight at once, so that the first micro-batch of a cold worker
// waits for little more than its own bytes. A column that may be kept in memory is at the same time
// completed in the background, shard by shard, each read once; a shard most of which a request
// needs anyway is read whole at once. Whole reads are verified against the index, range reads
// cannot be.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/buffer.h"
#include "core/manifest.h"
#include "core/tensor.h"
#include "store/object_store.h"

namespace funcpipe {

struct ColumnShard {
  std::string key;
  std::uint64_t offset = 0;  // of the column within the object
  std::int64_t first = 0;    // its first record
  std::int64_t records = 0;
  std::uint64_t checksum = 0;
};

struct ColumnOptions {
  bool keep = false;                    // hold the column in memory
  int parallel_requests = 8;            // of one read
  std::uint64_t gap_bytes = 64 * 1024;  // records this near are read in one request
};

// read() may be called by any number of threads at once.
class DatasetColumn {
 public:
  // `store` outlives the column. `shards` in record order.
  DatasetColumn(ObjectStore& store, TensorFacts facts, std::vector<ColumnShard> shards,
                const ColumnOptions& options);

  // One tensor of shape [records.size(), record...], in the order asked for; a record may be
  // asked for twice. Throws Error(kInvalidArgument) for a record that does not exist, kDataLoss for
  // a shard that is missing, short or fails its checksum (also when the background read found it).
  TensorBundle read(std::span<const std::uint32_t> records);

 private:
  struct Want {  // one record that is not in memory, and where in the result it belongs
    std::size_t shard;
    std::int64_t record;  // within the shard
    std::size_t position;
  };
  struct Fetch {  // one request: records [first, last) of a shard, for wants [begin, end)
    std::size_t shard;
    std::int64_t first, last;
    std::size_t begin, end;
  };
  struct Slot {  // a shard's column in memory: set once, never changed
    std::atomic<bool> ready{false};
    Buffer buffer;
  };

  std::size_t shard_of(std::uint32_t record) const;
  std::vector<Want> copy_kept(std::span<const std::uint32_t> records, std::byte* out) const;
  std::vector<Fetch> plan(const std::vector<Want>& wants) const;
  bool worth_whole(std::size_t shard, std::int64_t needed) const;
  void run(const Fetch& fetch, const std::vector<Want>& wants, std::byte* out);
  void run_all(const std::vector<Fetch>& fetches, const std::vector<Want>& wants, std::byte* out);
  Buffer fetch_range(std::size_t shard, std::int64_t first, std::int64_t last);
  Buffer fetch_whole(std::size_t shard);
  void keep(std::size_t shard, Buffer buffer);
  void fill(const std::stop_token& stop);
  void start_filling();
  void rethrow_failure();

  ObjectStore& store_;
  const TensorFacts facts_;
  const std::vector<ColumnShard> shards_;
  const ColumnOptions options_;
  std::uint64_t record_bytes_;
  std::int64_t records_;

  std::unique_ptr<Slot[]> slots_;
  std::mutex mutex_;            // of slots being set, and of failure_
  std::exception_ptr failure_;  // of the background read
  std::atomic<bool> failed_{false};
  std::once_flag filling_;
  std::jthread filler_;  // last: it uses everything above
};

}  // namespace funcpipe
