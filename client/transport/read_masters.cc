#include "client/transport/read_masters.h"

#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/transport/backoff.h"
#include "client/transport/join_leave.h"
#include "common/base/status_macros.h"

namespace thinwire::client {
namespace {

// The slowest transfer that is not an error: a little below the smallest rate of --uplink and
// --downlink.
constexpr double kLeastBytesPerSecond = 1e4;

using Chunks = std::vector<MastersChunk>;

// Returns the most memory of the chunks of SERVER: twice that of one chunk per segment, because a
// server may make smaller chunks. PARTITION is that of the whole model.
uint64_t MostBytes(const Partition& partition, ServerId server) {
  uint64_t bytes = 0;
  for (const ShardId shard : partition.ShardsOf(server)) {
    for (const Segment& segment : partition.segments(shard)) {
      bytes += segment.count * sizeof(float) + partition.tensors()[segment.tensor].name.size() +
               2 * sizeof(MastersChunk);
    }
  }
  return 2 * bytes + (1 << 20);
}

// One call, whose reply the transport may set after the wait for it was stopped.
using Pending = std::shared_ptr<std::optional<absl::StatusOr<Chunks>>>;

// Reads the masters of one server.
class ServerRead {
 public:
  // Calls SERVER. TRANSPORT and REQUEST must outlive this object.
  ServerRead(Transport& transport, const std::shared_ptr<StopSignal>& stop, ServerId server,
             const MastersRequest& request, uint64_t most_bytes, absl::Duration timeout)
      : transport_(transport),
        stop_(stop),
        server_(server),
        request_(request),
        most_bytes_(most_bytes),
        timeout_(timeout) {
    Call();
  }

  // Blocks until the server has replied, an error is final, or STOP is set. Calls an unreachable
  // server again until PATIENCE has passed.
  absl::StatusOr<Chunks> Wait(Clock& clock, absl::Duration patience) {
    const absl::Time end = clock.Now() + patience;
    Backoff backoff(WorkerId{0}, server_);
    while (true) {
      const bool answered =
          stop_->WaitUntil([&] { return pending_->has_value(); }, absl::InfiniteDuration());
      if (!answered) {
        return WithServerName(transport_, server_,
                              absl::CancelledError("stopped while reading the parameters"));
      }
      absl::StatusOr<Chunks> chunks = std::move(**pending_);
      if (chunks.ok()) return chunks;
      const absl::Duration pause = backoff.Next();
      if (!IsRetryable(chunks.status()) || stop_->is_set() || clock.Now() + pause >= end) {
        return WithServerName(transport_, server_, chunks.status());
      }
      stop_->Wait(pause);
      Call();
    }
  }

 private:
  void Call() {
    pending_ = std::make_shared<std::optional<absl::StatusOr<Chunks>>>();
    transport_.Masters(server_, request_, most_bytes_, timeout_,
                       [stop = stop_, pending = pending_](absl::StatusOr<Chunks> reply) {
                         stop->Update([&] { *pending = std::move(reply); });
                       });
  }

  Transport& transport_;
  const std::shared_ptr<StopSignal> stop_;
  const ServerId server_;
  const MastersRequest& request_;
  const uint64_t most_bytes_;
  const absl::Duration timeout_;
  Pending pending_;
};

}  // namespace

MastersAssembly::MastersAssembly(const Partition& partition)
    : partition_(partition), arrived_(partition.tensors().size()) {
  for (uint32_t i = 0; i < partition.tensors().size(); ++i) {
    numbers_[partition.tensors()[i].name] = i;
    tensors_.emplace_back(partition.tensors()[i].value_count());
  }
}

absl::Status MastersAssembly::Add(const MastersChunk& chunk) {
  const std::string place = absl::StrCat("masters of ", chunk.tensor());
  const auto number = numbers_.find(chunk.tensor());
  if (number == numbers_.end()) {
    if (partition_.is_part()) return absl::OkStatus();  // another member's
    return absl::DataLossError(absl::StrCat(place, ": the model has no such tensor"));
  }
  if (chunk.values().size() % sizeof(float) != 0) {
    return absl::DataLossError(absl::StrCat(place, ": wrong length at value ", chunk.offset(),
                                            " (expected a multiple of 4 bytes, got ",
                                            chunk.values().size(), ")"));
  }
  std::vector<float>& values = tensors_[number->second];
  const uint64_t begin = chunk.offset();
  const uint64_t count = chunk.values().size() / sizeof(float);
  if (count == 0) return absl::OkStatus();
  if (begin > values.size() || count > values.size() - begin) {
    return absl::DataLossError(absl::StrCat(place, ": value out of range (expected ", values.size(),
                                            " values, got ", count, " from value ", begin, ")"));
  }
  std::map<uint64_t, uint64_t>& arrived = arrived_[number->second];
  const auto next = arrived.lower_bound(begin);
  if (next != arrived.end() && next->first < begin + count) {
    return absl::DataLossError(absl::StrCat(place, ": value ", next->first, " arrived twice"));
  }
  if (next != arrived.begin() && std::prev(next)->second > begin) {
    return absl::DataLossError(absl::StrCat(place, ": value ", begin, " arrived twice"));
  }
  arrived[begin] = begin + count;
  std::memcpy(values.data() + begin, chunk.values().data(), chunk.values().size());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::vector<float>>> MastersAssembly::Finish() {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    uint64_t next = 0;
    for (const auto& [begin, end] : arrived_[i]) {
      if (begin != next) break;
      next = end;
    }
    if (next == tensors_[i].size()) continue;
    return absl::DataLossError(absl::StrCat("masters of ", partition_.tensors()[i].name, ": value ",
                                            next, " is missing (expected ", tensors_[i].size(),
                                            " values)"));
  }
  return std::move(tensors_);
}

absl::StatusOr<std::vector<std::vector<float>>> ReadMasters(Transport& transport, Clock& clock,
                                                            const std::shared_ptr<StopSignal>& stop,
                                                            absl::Duration patience,
                                                            const Partition& partition,
                                                            const MastersRequest& request) {
  const double all_bytes = static_cast<double>(partition.whole().value_count() * sizeof(float));
  const absl::Duration timeout = patience + absl::Seconds(all_bytes / kLeastBytesPerSecond);
  std::map<ServerId, ServerRead> reads;
  for (uint32_t s = 0; s < partition.server_count(); ++s) {
    const ServerId server{s};
    if (partition.ShardsOf(server).empty()) continue;
    reads.try_emplace(server, transport, stop, server, request,
                      MostBytes(partition.whole(), server), timeout);
  }
  MastersAssembly assembly(partition);
  for (auto& [server, read] : reads) {
    ASSIGN_OR_RETURN(const Chunks chunks, read.Wait(clock, patience));
    for (const MastersChunk& chunk : chunks) {
      const absl::Status added = assembly.Add(chunk);
      if (!added.ok()) return WithServerName(transport, server, added);
    }
  }
  return assembly.Finish();
}

}  // namespace thinwire::client
