#include "server/rpc/testing/call_method.h"

#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace thinwire {

MethodReply CallMethod(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                       const std::string& message, const std::string& token) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  if (!token.empty()) context.AddMetadata("thinwire-token-bin", token);
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
  grpc::CompletionQueue queue;
  const auto await = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  const auto call = stub.PrepareCall(&context, method, &queue);
  call->StartCall(nullptr);
  if (await()) {
    const grpc::Slice slice(message);
    call->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
    await();
  }
  MethodReply answer;
  grpc::ByteBuffer reply;
  call->Read(&reply, nullptr);
  if (await()) {
    grpc::Slice bytes;
    EXPECT_TRUE(reply.DumpToSingleSlice(&bytes).ok());
    answer.message.emplace(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
    context.TryCancel();
  }
  call->Finish(&answer.status, nullptr);
  await();
  return answer;
}

}  // namespace thinwire
