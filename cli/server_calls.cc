#include "cli/server_calls.h"

#include <grpcpp/grpcpp.h>

#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "cli/masters_sum.h"
#include "proto/control.grpc.pb.h"

namespace thinwire {
namespace {

constexpr absl::Duration kAskTimeout = absl::Seconds(5);

absl::Status ToStatus(const grpc::Status& status, const std::string& name) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                      absl::StrCat(name, ": ", status.error_message()));
}

std::shared_ptr<grpc::Channel> ChannelTo(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

struct ServerCalls::Server {
  Server(size_t number, const std::string& address)
      : name(absl::StrCat("server ", number, " (", address, ")")),
        stub(Control::NewStub(ChannelTo(address))) {}

  void Ask() {
    absl::MutexLock lock(&mu);
    if (context != nullptr) return;
    context = std::make_unique<grpc::ClientContext>();
    context->set_deadline(absl::ToChronoTime(absl::Now() + kAskTimeout));
    stub->async()->Status(context.get(), &request, &reply, [this](grpc::Status status) {
      absl::MutexLock answered(&mu);
      if (status.ok()) latest = reply;
      context.reset();
    });
  }

  void GiveUp() {
    absl::MutexLock lock(&mu);
    if (context != nullptr) context->TryCancel();
    mu.Await(absl::Condition(
        +[](std::unique_ptr<grpc::ClientContext>* c) { return *c == nullptr; }, &context));
  }

  const std::string name;
  const std::unique_ptr<Control::Stub> stub;
  const StatusRequest request;

  absl::Mutex mu;
  std::unique_ptr<grpc::ClientContext> context ABSL_GUARDED_BY(mu);  // of the call that is out
  StatusReply reply;                                                 // of the call that is out
  std::optional<StatusReply> latest ABSL_GUARDED_BY(mu);
};

ServerCalls::ServerCalls(const std::vector<std::string>& addresses) {
  for (const std::string& address : addresses) {
    servers_.push_back(std::make_unique<Server>(servers_.size(), address));
  }
}

ServerCalls::~ServerCalls() {
  for (const auto& server : servers_) server->GiveUp();
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

absl::StatusOr<std::vector<StatusReply>> ServerCalls::Status(absl::Duration timeout) {
  std::vector<StatusReply> replies;
  for (const auto& server : servers_) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
    StatusReply reply;
    const absl::Status status =
        ToStatus(server->stub->Status(&context, StatusRequest(), &reply), server->name);
    if (!status.ok()) return status;
    replies.push_back(std::move(reply));
  }
  return replies;
}

absl::StatusOr<uint32_t> ServerCalls::MastersCrc32c(const std::vector<StatusReply>& statuses,
                                                    absl::Duration timeout) {
  MastersSum sum;
  for (const auto& server : servers_) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
    const auto reader = server->stub->Masters(&context, MastersRequest());
    MastersChunk chunk;
    absl::Status added;
    while (reader->Read(&chunk)) added.Update(sum.Add(chunk));
    added.Update(ToStatus(reader->Finish(), server->name));
    if (!added.ok()) return added;
  }
  uint64_t wanted = 0;
  for (const StatusReply& status : statuses) {
    for (const ShardStatus& shard : status.shards()) wanted += shard.values();
  }
  if (sum.value_count() != wanted) {
    return absl::DataLossError(
        absl::StrCat("masters: want ", wanted, " values, got ", sum.value_count()));
  }
  return sum.Crc32c();
}

}  // namespace thinwire
