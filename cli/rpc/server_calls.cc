#include "cli/rpc/server_calls.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/support/channel_arguments.h>

#include <optional>
#include <span>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "cli/rpc/call_error.h"
#include "common/base/ids.h"
#include "common/base/status_macros.h"
#include "common/files/crc32c.h"
#include "proto/control.grpc.pb.h"

namespace thinwire {
namespace {

constexpr absl::Duration kStatusTimeout = absl::Seconds(5);
// The lead calls the other servers for up to two seconds before it replies.
constexpr absl::Duration kScaleTimeout = absl::Seconds(10);

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  // Channels to the same address would otherwise share a connection, and the time until the next
  // attempt to open it.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

}  // namespace

absl::Status MastersChecksum::Add(const MastersChunk& chunk) {
  if (chunk.values().size() % sizeof(float) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "masters of ", chunk.tensor(), ": wrong length (expected a multiple of 4 bytes, got ",
        chunk.values().size(), ")"));
  }
  tensors_[chunk.tensor()].emplace(chunk.offset(), chunk.values());
  value_count_ += chunk.values().size() / sizeof(float);
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> MastersChecksum::Crc32c() const {
  uint32_t crc = 0;
  for (const auto& [tensor, pieces] : tensors_) {
    uint64_t next = 0;
    for (const auto& [offset, bytes] : pieces) {
      if (offset != next) {
        return absl::DataLossError(absl::StrCat("masters of ", tensor,
                                                ": gap or overlap (expected value ", next, ", got ",
                                                offset, ")"));
      }
      crc = thinwire::Crc32c(std::as_bytes(std::span(bytes)), crc);
      next += bytes.size() / sizeof(float);
    }
  }
  return crc;
}

struct ServerCalls::Server {
  Server(ServerId number, const std::string& address, const Credentials& credentials)
      : name(ServerName(number, address)),
        stub(Control::NewStub(credentials.Connect(address, number, Arguments()))) {}

  void Ask() {
    absl::MutexLock lock(&mu);
    if (context != nullptr) return;
    context = std::make_unique<grpc::ClientContext>();
    context->set_deadline(absl::ToChronoTime(absl::Now() + kStatusTimeout));
    stub->async()->Status(context.get(), &request, &reply, [this](grpc::Status status) {
      absl::MutexLock answered(&mu);
      if (status.ok()) latest = reply;
      context.reset();
    });
  }

  void AskScale(uint32_t workers, const Credentials& credentials) {
    absl::MutexLock lock(&mu);
    if (scale_context != nullptr) return;
    scale_context = std::make_unique<grpc::ClientContext>();
    scale_context->set_deadline(absl::ToChronoTime(absl::Now() + kScaleTimeout));
    scale_request.set_workers(workers);
    stub->async()->Scale(scale_context.get(), &scale_request, &scale_reply,
                         [this, workers, &credentials](grpc::Status status) {
                           absl::MutexLock answered(&mu);
                           scaled = {workers, CallError(status, name, credentials)};
                           scale_context.reset();
                         });
  }

  // Cancels the pending calls, if any, and blocks until their callbacks have run.
  void Cancel() {
    absl::MutexLock lock(&mu);
    if (context != nullptr) context->TryCancel();
    if (scale_context != nullptr) scale_context->TryCancel();
    const auto is_null = +[](std::unique_ptr<grpc::ClientContext>* c) { return *c == nullptr; };
    mu.Await(absl::Condition(is_null, &context));
    mu.Await(absl::Condition(is_null, &scale_context));
  }

  const std::string name;
  const std::unique_ptr<Control::Stub> stub;
  const StatusRequest request;

  absl::Mutex mu;
  std::unique_ptr<grpc::ClientContext> context ABSL_GUARDED_BY(mu);  // null: no call is pending
  StatusReply reply;  // the reply of the pending call
  std::optional<StatusReply> latest ABSL_GUARDED_BY(mu);

  std::unique_ptr<grpc::ClientContext> scale_context ABSL_GUARDED_BY(mu);  // as `context`
  ScaleRequest scale_request;  // of the pending call, as its reply
  ScaleReply scale_reply;
  std::optional<Scaled> scaled ABSL_GUARDED_BY(mu);
};

ServerCalls::ServerCalls(const std::vector<std::string>& addresses, const Credentials& credentials)
    : credentials_(credentials) {
  for (uint32_t s = 0; s < addresses.size(); ++s) {
    servers_.push_back(std::make_unique<Server>(ServerId{s}, addresses[s], credentials));
  }
}

ServerCalls::~ServerCalls() {
  for (const auto& server : servers_) server->Cancel();
}

void ServerCalls::AskStatus() {
  for (const auto& server : servers_) server->Ask();
}

std::vector<StatusReply> ServerCalls::latest() const {
  std::vector<StatusReply> replies;
  for (const auto& server : servers_) {
    absl::MutexLock lock(&server->mu);
    if (server->latest) replies.push_back(*server->latest);
  }
  return replies;
}

void ServerCalls::AskScale(uint32_t workers) { servers_.front()->AskScale(workers, credentials_); }

std::optional<ServerCalls::Scaled> ServerCalls::TakeScaled() {
  Server& lead = *servers_.front();
  absl::MutexLock lock(&lead.mu);
  return std::exchange(lead.scaled, std::nullopt);
}

std::vector<absl::StatusOr<StatusReply>> ServerCalls::StatusOfEach(absl::Duration timeout) {
  struct Call {
    grpc::ClientContext context;
    StatusRequest request;
    StatusReply reply;
    grpc::Status status;
  };
  std::vector<Call> calls(servers_.size());
  absl::BlockingCounter pending(static_cast<int>(calls.size()));
  for (size_t i = 0; i < calls.size(); ++i) {
    Call& call = calls[i];
    call.context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
    servers_[i]->stub->async()->Status(&call.context, &call.request, &call.reply,
                                       [&call, &pending](grpc::Status status) {
                                         call.status = std::move(status);
                                         pending.DecrementCount();
                                       });
  }
  pending.Wait();
  std::vector<absl::StatusOr<StatusReply>> replies;
  for (size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].status.ok()) {
      replies.emplace_back(std::move(calls[i].reply));
    } else {
      replies.emplace_back(CallError(calls[i].status, servers_[i]->name, credentials_));
    }
  }
  return replies;
}

absl::StatusOr<std::vector<StatusReply>> ServerCalls::Status(absl::Duration timeout) {
  std::vector<StatusReply> replies;
  for (absl::StatusOr<StatusReply>& reply : StatusOfEach(timeout)) {
    RETURN_IF_ERROR(reply.status());
    replies.push_back(*std::move(reply));
  }
  return replies;
}

absl::StatusOr<uint32_t> ServerCalls::MastersCrc32c(const std::vector<StatusReply>& statuses,
                                                    absl::Duration timeout) {
  MastersChecksum checksum;
  for (const auto& server : servers_) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
    const auto reader = server->stub->Masters(&context, MastersRequest());
    MastersChunk chunk;
    absl::Status status;
    while (reader->Read(&chunk)) status.Update(checksum.Add(chunk));
    status.Update(CallError(reader->Finish(), server->name, credentials_));
    RETURN_IF_ERROR(status);
  }
  uint64_t expected = 0;
  for (const StatusReply& status : statuses) {
    for (const ShardStatus& shard : status.shards()) expected += shard.values();
  }
  if (checksum.value_count() != expected) {
    return absl::DataLossError(absl::StrCat("masters: wrong number of values (expected ", expected,
                                            ", got ", checksum.value_count(), ")"));
  }
  return checksum.Crc32c();
}

}  // namespace thinwire
