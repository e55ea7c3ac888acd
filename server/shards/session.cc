#include "server/shards/session.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/shards/convert.h"
#include "server/shards/counters.h"
#include "server/shards/hosted_model.h"
#include "server/shards/journal.h"
#include "server/shards/stream/stream_table.h"

namespace thinwire {
namespace {

// Returns the maximum number of entries in a frame for a server with SHARD_COUNT shards. A client
// sends at most three entries per shard: a seed, a push and a read.
size_t MostEntries(size_t shard_count) {
  return std::clamp(8 * shard_count, size_t{64}, kMostEntries);
}

// Makes every payload of FRAME share ownership of TOKEN.
void HoldPayloads(WorkerFrame& frame, const std::shared_ptr<const void>& token) {
  for (SeedEntry& seed : frame.seeds) seed.payload.Hold(token);
  for (PushEntry& push : frame.pushes) push.payload.Hold(token);
}

std::string NameOf(const Sender& sender) {
  return absl::StrCat(sender.worker.value,
                      sender.member == 0 ? "" : absl::StrCat(" member ", sender.member),
                      " incarnation ", sender.incarnation.value);
}

uint64_t PushBytes(const WorkerFrame& frame) {
  uint64_t bytes = 0;
  for (const PushEntry& push : frame.pushes) bytes += push.payload.size();
  return bytes;
}

}  // namespace

Session::Session(const SessionScope& scope, StreamLink link)
    : scope_(scope),
      may_send_(link.check_sender),
      stream_(std::make_shared<ServerStream>(
          std::move(link), scope.generation, scope.epoch,
          [&counters = scope.counters](uint64_t sent, uint64_t payload) {
            counters.Update([=](StatusReply& counts) {
              counts.set_stream_sent_bytes(counts.stream_sent_bytes() + sent);
              counts.set_parameters_payload_bytes(counts.parameters_payload_bytes() + payload);
            });
          })),
      window_(std::make_shared<FrameWindow>(scope.frames, scope.journal.logs() ? kLoggedFrames : 1,
                                            [stream = std::weak_ptr<ServerStream>(stream_)] {
                                              if (const auto alive = stream.lock())
                                                alive->AllowRead();
                                            })) {}

Session::~Session() { scope_.streams.Remove(stream_.get()); }

void Session::OnFrame(const ByteChain& bytes) {
  scope_.counters.Update([received = bytes.size()](StatusReply& counts) {
    counts.set_stream_received_bytes(counts.stream_received_bytes() + received);
  });
  absl::Status status = HandleFrame(bytes, window_->Hold(bytes.size()));
  if (!status.ok()) return stream_->End(std::move(status));
  // Only now, because calls of OnFrame must not overlap.
  window_->Next();
}

void Session::OnReadEnd() { stream_->EndAfterFlush(absl::OkStatus()); }

void Session::OnBroken() {
  scope_.streams.Remove(stream_.get());
  stream_->End(absl::CancelledError("the peer has disconnected"));
}

absl::Status Session::HandleFrame(const ByteChain& bytes,
                                  const std::shared_ptr<const void>& token) {
  const std::shared_ptr<const HostedModel> model = scope_.model.Get();
  const size_t shard_count = model == nullptr ? 0 : model->hosts().size();
  ASSIGN_OR_RETURN(WorkerFrame frame, ParseWorkerFrame(bytes, MostEntries(shard_count)));
  RETURN_IF_ERROR(CheckSender(frame));
  if (model == nullptr) return absl::FailedPreconditionError("no worker has joined yet");

  HoldPayloads(frame, token);
  const uint64_t push_bytes = PushBytes(frame);
  ASSIGN_OR_RETURN(std::vector<ShardEvents> groups,
                   EventsOf(std::move(frame), model->partition(), scope_.self, scope_.generation,
                            scope_.publishes));
  for (const ShardEvents& group : groups) {
    if (scope_.streams.Owns(sender_->worker, sender_->member, group.shard)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "shard ", group.shard.value, ": belongs to another member than worker ", NameOf(*sender_)));
  }
  scope_.counters.Update([push_bytes](StatusReply& counts) {
    counts.set_push_payload_bytes(counts.push_payload_bytes() + push_bytes);
  });
  {
    FrameBatch batch;
    for (ShardEvents& group : groups) {
      ShardHost& host = model->host(group.shard);
      for (Event& event : group.events) {
        host.Submit(
            std::move(event), stream_, [token](const Effects&) {}, &batch);
      }
    }
  }
  // Behind the events, so that what the job decides about their sender follows them.
  if (const absl::Time now = scope_.clock.Now(); now >= heard_ + scope_.heard_interval) {
    heard_ = now;
    scope_.heard(*sender_);
  }
  return absl::OkStatus();
}

absl::Status Session::CheckSender(const WorkerFrame& frame) {
  if (frame.epoch != scope_.epoch) {
    return absl::FailedPreconditionError(
        absl::StrCat("epoch: this server was restarted; join again (expected ", scope_.epoch.value,
                     ", got ", frame.epoch.value, ")"));
  }
  const Sender sender = {frame.worker, frame.incarnation, frame.member};
  // A stream may outlive the certificate and the token with which it was opened.
  if (absl::Status allowed = may_send_(frame.worker, frame.incarnation); !allowed.ok()) {
    if (sender_ != sender) return allowed;
    // The client opens the next stream with its newest certificate and token.
    return absl::AbortedError(absl::StrCat("open the stream again: ", allowed.message()));
  }
  if (sender_.has_value() && *sender_ != sender) {
    return absl::InvalidArgumentError(
        absl::StrCat("frame: another sender than the stream's first frame (expected worker ",
                     NameOf(*sender_), ", got worker ", NameOf(sender), ")"));
  }
  if (sender_.has_value()) return absl::OkStatus();
  absl::Status status =
      scope_.streams.Register(frame.worker, frame.incarnation, stream_, frame.member);
  if (status.ok()) sender_ = sender;
  return status;
}

}  // namespace thinwire
