#include "client/transport/claim_number.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/channel_arguments.h>

#include <chrono>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/transport/join_leave.h"
#include "proto/control.grpc.pb.h"
#include "proto/grpc_message.h"

namespace thinwire::client {
namespace {

constexpr absl::Duration kCallTimeout = absl::Seconds(2);
constexpr absl::Duration kPause = absl::Milliseconds(500);

absl::StatusOr<WorkerId> Ask(Control::Stub& lead, const NumberClaim& claim) {
  ClaimNumberRequest request;
  request.mutable_kept()->Assign(claim.kept.begin(), claim.kept.end());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoNanoseconds(kCallTimeout));
  ClaimNumberReply reply;
  const grpc::Status status = lead.ClaimNumber(&context, request, &reply);
  if (status.ok()) return WorkerId{reply.worker()};
  // gRPC and absl number their status codes equally.
  return absl::Status(
      static_cast<absl::StatusCode>(status.error_code()),
      absl::StrCat("server 0 (", claim.lead, "): ", PlainMessage(status.error_message())));
}

}  // namespace

absl::StatusOr<WorkerId> ClaimNumber(const NumberClaim& claim, const Credentials& credentials,
                                     Clock& clock, absl::FunctionRef<bool(absl::Duration)> pause) {
  const auto& identity = credentials.identity();
  if (identity.has_value() && identity->number.has_value()) return WorkerId{*identity->number};
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  const auto lead = Control::NewStub(credentials.Connect(claim.lead, ServerId{0}, arguments));
  const absl::Time begin = clock.Now();
  while (true) {
    absl::StatusOr<WorkerId> number = Ask(*lead, claim);
    if (number.ok()) return number;
    const bool in_use = absl::IsAlreadyExists(number.status());
    if (!in_use && !IsRetryable(number.status())) return number;
    // A second beyond the lease, because the lead expires leases at its ticks.
    const absl::Duration patience = in_use ? claim.lease + absl::Seconds(1) : claim.start_timeout;
    if (clock.Now() + kPause >= begin + patience) return number;
    if (!pause(kPause)) return absl::CancelledError("stopped while waiting for a worker number");
  }
}

}  // namespace thinwire::client
