#include "cli/server_calls.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <span>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/crc32c.h"
#include "proto/control.grpc.pb.h"

namespace thinwire {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

// Long enough that only a hang meets it.
constexpr absl::Duration kPatience = absl::Seconds(60);

// A server that holds one tensor.
class FakeServer final : public Control::Service {
 public:
  FakeServer(std::string tensor, std::string values)
      : tensor_(std::move(tensor)), values_(std::move(values)) {
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    address_ = absl::StrCat("127.0.0.1:", port);
  }

  grpc::Status Status(grpc::ServerContext*, const StatusRequest*, StatusReply* reply) override {
    reply->set_accepted_pushes(7);
    reply->add_shards()->set_values(values_.size() / 4 + extra_values);
    if (!asked.HasBeenNotified()) asked.Notify();
    return grpc::Status::OK;
  }

  grpc::Status Masters(grpc::ServerContext*, const MastersRequest*,
                       grpc::ServerWriter<MastersChunk>* out) override {
    for (size_t at = 0; at < values_.size(); at += 4) {
      MastersChunk chunk;
      chunk.set_tensor(tensor_);
      chunk.set_offset(at / 4);
      chunk.set_values(values_.substr(at, 4));
      out->Write(chunk);
    }
    return grpc::Status::OK;
  }

  const std::string& address() const { return address_; }
  void Stop() { server_->Shutdown(); }

  uint64_t extra_values = 0;
  absl::Notification asked;

 private:
  const std::string tensor_;
  const std::string values_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

TEST(ServerCallsTest, TheChecksumIsOfAllServersInTheOrderOfNames) {
  FakeServer first("b", "bbbbBBBB");
  FakeServer second("a", "aaaa");
  ServerCalls calls({first.address(), second.address()});
  const auto statuses = calls.Status(kPatience);
  ASSERT_TRUE(statuses.ok()) << statuses.status();
  EXPECT_EQ(TotalsOf(*statuses).counters.accepted_pushes(), 14);
  const std::string whole = "aaaabbbbBBBB";
  const auto crc = calls.MastersCrc32c(*statuses, kPatience);
  ASSERT_TRUE(crc.ok()) << crc.status();
  EXPECT_EQ(*crc, Crc32c(std::as_bytes(std::span(whole))));
}

TEST(ServerCallsTest, AMissingPieceIsAnError) {
  FakeServer server("a", "aaaa");
  server.extra_values = 1;
  ServerCalls calls({server.address()});
  EXPECT_EQ(calls.MastersCrc32c(*calls.Status(kPatience), kPatience).status().message(),
            "masters: want 2 values, got 1");
}

TEST(ServerCallsTest, AServerThatIsGoneIsNamed) {
  FakeServer server("a", "aaaa");
  server.Stop();
  ServerCalls calls({server.address()});
  EXPECT_THAT(std::string(calls.Status(kPatience).status().message()),
              HasSubstr("server 0 (" + server.address()));
}

TEST(ServerCallsTest, AskingDoesNotWaitForTheAnswer) {
  FakeServer server("a", "aaaa");
  ServerCalls calls({server.address()});
  EXPECT_THAT(calls.latest(), SizeIs(0));
  calls.AskStatus();
  server.asked.WaitForNotification();
  while (calls.latest().empty()) calls.AskStatus();
  EXPECT_EQ(calls.latest()[0].accepted_pushes(), 7);
}

TEST(ServerCallsTest, WhatIsStillAskedIsGivenUpAtTheEnd) {
  // Nothing listens there: the call may be out when its owner goes.
  ServerCalls({"127.0.0.1:1"}).AskStatus();
}

}  // namespace
}  // namespace thinwire
