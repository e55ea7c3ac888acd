#include "client/grpc_stream.h"

#include <grpcpp/generic/generic_stub.h>

#include <utility>

#include "proto/grpc_bytes.h"

namespace thinwire {
namespace {

constexpr char kExchange[] = "/thinwire.ParameterService/Exchange";

}  // namespace

absl::Status FromGrpc(const grpc::Status& status) {
  // The numbers are the same ones.
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

GrpcStream::GrpcStream(std::shared_ptr<grpc::Channel> channel, StreamObserver& observer)
    : channel_(std::move(channel)), observer_(observer) {
  grpc::GenericStub stub(channel_);
  stub.PrepareBidiStreamingCall(&context_, kExchange, grpc::StubOptions(), this);
  AddHold();
  StartRead(&incoming_);
  StartCall();
}

GrpcStream::~GrpcStream() {
  context_.TryCancel();
  if (End()) RemoveHold();
  done_.WaitForNotification();
}

bool GrpcStream::End() {
  absl::MutexLock lock(&mu_);
  return !std::exchange(ended_, true);
}

void GrpcStream::Write(ByteChain frame) {
  absl::MutexLock lock(&mu_);
  if (ended_) return;
  outgoing_ = ToByteBuffer(frame);
  StartWrite(&outgoing_);
}

void GrpcStream::ReadNext() {
  absl::MutexLock lock(&mu_);
  if (ended_) return;
  StartRead(&incoming_);
}

void GrpcStream::OnReadDone(bool ok) {
  if (!ok) {
    if (End()) RemoveHold();
    return;
  }
  ByteChain frame = FromByteBuffer(incoming_);
  incoming_.Clear();
  observer_.OnFrame(std::move(frame));
}

void GrpcStream::OnWriteDone(bool ok) {
  outgoing_.Clear();
  if (ok) observer_.OnWritten();
}

void GrpcStream::OnDone(const grpc::Status& status) {
  observer_.OnClosed(FromGrpc(status));
  done_.Notify();
}

}  // namespace thinwire
