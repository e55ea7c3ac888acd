#include "server/edge/session.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/edge/convert.h"
#include "server/edge/counters.h"
#include "server/edge/delivery.h"
#include "server/edge/hosted_model.h"
#include "server/edge/stream_table.h"

namespace thinwire {
namespace {

// Something whose last owner, wherever it is, lets the stream read on.
std::shared_ptr<const void> ReadOnToken(const std::shared_ptr<ServerStream>& stream) {
  return std::shared_ptr<const void>(stream.get(), [weak = std::weak_ptr(stream)](const void*) {
    if (const auto alive = weak.lock()) alive->ReadOn();
  });
}

uint64_t HoldPayloads(WorkerFrame& frame, const std::shared_ptr<const void>& token) {
  uint64_t push_bytes = 0;
  for (SeedEntry& seed : frame.seeds) seed.payload.Hold(token);
  for (PushEntry& push : frame.pushes) {
    push.payload.Hold(token);
    push_bytes += push.payload.size();
  }
  return push_bytes;
}

}  // namespace

Session::Session(const SessionScope& scope, StreamLink link)
    : scope_(scope),
      stream_(std::make_shared<ServerStream>(
          std::move(link), scope.generation, scope.epoch,
          [&counters = scope.counters](uint64_t n) { counters.CountParametersPayload(n); })) {}

Session::~Session() { scope_.streams.Remove(stream_.get()); }

void Session::OnFrame(const ByteChain& bytes) {
  absl::Status status = Take(bytes);
  if (!status.ok()) stream_->End(std::move(status));
}

void Session::OnReadEnd() { stream_->EndWhenSaid(absl::OkStatus()); }

void Session::OnBroken() {
  scope_.streams.Remove(stream_.get());
  stream_->End(absl::CancelledError("the peer is gone"));
}

absl::Status Session::Take(const ByteChain& bytes) {
  absl::StatusOr<WorkerFrame> frame = ParseWorkerFrame(bytes);
  if (!frame.ok()) return frame.status();
  absl::Status status = CheckSender(*frame);
  if (!status.ok()) return status;
  const std::shared_ptr<const HostedModel> model = scope_.model();
  if (model == nullptr) return absl::FailedPreconditionError("no worker has joined yet");

  const std::shared_ptr<const void> token = ReadOnToken(stream_);
  const uint64_t push_bytes = HoldPayloads(*frame, token);
  auto groups = EventsOf(std::move(*frame), model->partition(), scope_.self, scope_.generation,
                         scope_.publishes);
  if (!groups.ok()) return groups.status();
  scope_.counters.CountPushPayload(push_bytes);
  scope_.heard(sender_->first, sender_->second);
  for (ShardEvents& group : *groups) {
    ShardHost& host = model->host(group.shard);
    host.Post([&host, &delivery = scope_.delivery, events = std::move(group.events),
               stream = stream_, token](Shard& shard) {
      for (const Event& event : events) delivery.Apply(host, shard, event, stream.get());
    });
  }
  return absl::OkStatus();
}

absl::Status Session::CheckSender(const WorkerFrame& frame) {
  if (frame.epoch != scope_.epoch) {
    return absl::FailedPreconditionError(absl::StrCat("epoch: this server's is ",
                                                      scope_.epoch.value, ", the frame's is ",
                                                      frame.epoch.value, ": join again"));
  }
  const std::pair sender(frame.worker, frame.incarnation);
  if (sender_.has_value() && *sender_ != sender) {
    return absl::InvalidArgumentError(
        absl::StrCat("want all frames of a stream from worker ", sender_->first.value,
                     " incarnation ", sender_->second.value, ", got one from worker ",
                     frame.worker.value, " incarnation ", frame.incarnation.value));
  }
  if (sender_.has_value()) return absl::OkStatus();
  absl::Status status = scope_.streams.Enter(frame.worker, frame.incarnation, stream_);
  if (status.ok()) sender_ = sender;
  return status;
}

}  // namespace thinwire
