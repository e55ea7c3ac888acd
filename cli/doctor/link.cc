#include "cli/doctor/link.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/median.h"
#include "common/base/status_macros.h"
#include "proto/control.grpc.pb.h"
#include "proto/probe.grpc.pb.h"

namespace thinwire {
namespace {

constexpr uint32_t kMessageBytes = 1 << 20;
constexpr uint32_t kMaxMessageCount = 64;
constexpr int kRoundTrips = 20;
// A transfer of this duration is long enough to measure the goodput.
constexpr absl::Duration kLongEnough = absl::Milliseconds(500);
constexpr absl::Duration kDeadline = absl::Seconds(60);

// gRPC and absl number their status codes equally.
absl::Status ToStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

void SetDeadline(grpc::ClientContext& context) {
  context.set_deadline(absl::ToChronoTime(absl::Now() + kDeadline));
}

// Sends REQUEST COUNT times in one call, reads all replies, and returns the duration.
absl::StatusOr<absl::Duration> TimeOf(Probe::Stub& stub, const ProbeRequest& request,
                                      uint32_t count, Clock& clock) {
  grpc::ClientContext context;
  SetDeadline(context);
  const absl::Time begin = clock.Now();
  const auto stream = stub.Exchange(&context);
  for (uint32_t i = 0; i < count && stream->Write(request); ++i) continue;
  stream->WritesDone();
  ProbeReply reply;
  while (stream->Read(&reply)) continue;
  RETURN_IF_ERROR(ToStatus(stream->Finish()));
  return clock.Now() - begin;
}

// Returns the goodput of a transfer in bytes per second. `transfer` transfers a number of messages
// of kMessageBytes and returns the duration. The number rises until the transfer is long enough.
template <typename Transfer>
absl::StatusOr<double> GoodputOf(Transfer transfer) {
  for (uint32_t count = 1;; count = std::min(4 * count, kMaxMessageCount)) {
    ASSIGN_OR_RETURN(const absl::Duration time, transfer(count));
    if (time >= kLongEnough || count == kMaxMessageCount) {
      return double{kMessageBytes} * count / std::max(absl::ToDoubleSeconds(time), 1e-9);
    }
  }
}

absl::StatusOr<LinkSpeed> MeasureProbe(const std::shared_ptr<grpc::Channel>& channel,
                                       Clock& clock) {
  Probe::Stub stub(channel);
  LinkSpeed speed;
  ProbeRequest ping;
  ping.set_reply_count(1);
  std::vector<absl::Duration> round_trips;
  for (int i = 0; i < kRoundTrips; ++i) {
    ASSIGN_OR_RETURN(round_trips.emplace_back(), TimeOf(stub, ping, 1, clock));
  }
  speed.round_trip = Median(std::move(round_trips));
  ProbeRequest upload = ping;
  upload.set_payload(std::string(kMessageBytes, 'u'));
  ASSIGN_OR_RETURN(speed.up,
                   GoodputOf([&](uint32_t count) { return TimeOf(stub, upload, count, clock); }));
  ASSIGN_OR_RETURN(speed.down, GoodputOf([&](uint32_t count) {
                     ProbeRequest download;
                     download.set_reply_count(count);
                     download.set_reply_bytes(kMessageBytes);
                     return TimeOf(stub, download, 1, clock);
                   }));
  return speed;
}

// Reads the parameters until the transfer is long enough, and returns the bytes per second; nullopt
// if the server has no parameters yet.
absl::StatusOr<std::optional<double>> DownloadOf(Control::Stub& stub, Clock& clock) {
  grpc::ClientContext context;
  SetDeadline(context);
  const auto reader = stub.Masters(&context, MastersRequest());
  const absl::Time begin = clock.Now();
  uint64_t bytes = 0;
  MastersChunk chunk;
  while (reader->Read(&chunk)) {
    bytes += chunk.values().size();
    if (clock.Now() - begin >= kLongEnough) context.TryCancel();
  }
  const absl::Duration time = clock.Now() - begin;
  const absl::Status status = ToStatus(reader->Finish());
  if (absl::IsFailedPrecondition(status) || bytes == 0) return std::nullopt;
  if (!status.ok() && !absl::IsCancelled(status)) return status;
  return static_cast<double>(bytes) / std::max(absl::ToDoubleSeconds(time), 1e-9);
}

}  // namespace

absl::StatusOr<LinkSpeed> MeasureLink(const std::shared_ptr<grpc::Channel>& channel, Clock& clock) {
  Control::Stub stub(channel);
  std::vector<absl::Duration> round_trips;
  for (int i = 0; i < kRoundTrips; ++i) {
    grpc::ClientContext context;
    SetDeadline(context);
    StatusReply reply;
    const absl::Time begin = clock.Now();
    const absl::Status status = ToStatus(stub.Status(&context, StatusRequest(), &reply));
    round_trips.push_back(clock.Now() - begin);
    if (absl::IsUnimplemented(status)) return MeasureProbe(channel, clock);
    RETURN_IF_ERROR(status);
  }
  LinkSpeed speed;
  speed.round_trip = Median(std::move(round_trips));
  ASSIGN_OR_RETURN(speed.down, DownloadOf(stub, clock));
  return speed;
}

class LinkListener::Service final : public Probe::Service {
  using Stream = grpc::ServerReaderWriter<ProbeReply, ProbeRequest>;

  grpc::Status Exchange(grpc::ServerContext* /*context*/, Stream* stream) override {
    ProbeRequest request;
    while (stream->Read(&request)) {
      if (request.reply_count() > kMaxMessageCount || request.reply_bytes() > kMessageBytes) {
        return grpc::Status(
            grpc::StatusCode::INVALID_ARGUMENT,
            absl::StrCat("probe: too many replies (expected at most ", kMaxMessageCount, " of ",
                         kMessageBytes, " bytes, got ", request.reply_count(), " of ",
                         request.reply_bytes(), ")"));
      }
      ProbeReply reply;
      reply.set_payload(std::string(request.reply_bytes(), 'd'));
      for (uint32_t i = 0; i < request.reply_count() && stream->Write(reply); ++i) continue;
    }
    return grpc::Status::OK;
  }
};

LinkListener::LinkListener() : service_(std::make_unique<Service>()) {}

LinkListener::~LinkListener() {
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
}

absl::StatusOr<std::unique_ptr<LinkListener>> LinkListener::Start(const std::string& address,
                                                                  const Credentials& credentials) {
  std::unique_ptr<LinkListener> listener(new LinkListener);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address, credentials.ForServer(), &port);
  builder.RegisterService(listener->service_.get());
  listener->server_ = builder.BuildAndStart();
  if (listener->server_ == nullptr || port == 0) {
    return absl::UnavailableError(absl::StrCat("--listen: cannot listen on ", address));
  }
  listener->address_ = absl::StrCat(address.substr(0, address.rfind(':') + 1), port);
  return listener;
}

}  // namespace thinwire
