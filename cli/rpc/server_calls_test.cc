#include "cli/rpc/server_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>

#include "cli/rpc/fake_control_server.h"
#include "common/files/crc32c.h"

namespace thinwire {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

// Tests reach this timeout only if they hang.
constexpr absl::Duration kTimeout = absl::Seconds(60);

TEST(ServerCallsTest, TheChecksumCoversAllServersInTheOrderOfTensorNames) {
  FakeControlServer first("b", "bbbbBBBB");
  FakeControlServer second("a", "aaaa");
  ServerCalls calls({first.address(), second.address()});
  const auto statuses = calls.Status(kTimeout);
  ASSERT_TRUE(statuses.ok()) << statuses.status();
  EXPECT_EQ((*statuses)[1].accepted_pushes(), 7);
  const std::string whole = "aaaabbbbBBBB";
  const auto crc = calls.MastersCrc32c(*statuses, kTimeout);
  ASSERT_TRUE(crc.ok()) << crc.status();
  EXPECT_EQ(*crc, Crc32c(std::as_bytes(std::span(whole))));
}

TEST(ServerCallsTest, AMissingPieceIsAnError) {
  FakeControlServer server("a", "aaaa");
  server.extra_values = 1;
  ServerCalls calls({server.address()});
  EXPECT_EQ(calls.MastersCrc32c(*calls.Status(kTimeout), kTimeout).status().message(),
            "masters: wrong number of values (expected 2, got 1)");
}

TEST(ServerCallsTest, AnUnreachableServerIsNamed) {
  FakeControlServer server("a", "aaaa");
  server.Stop();
  ServerCalls calls({server.address()});
  EXPECT_THAT(std::string(calls.Status(kTimeout).status().message()),
              HasSubstr("server 0 (" + server.address()));
}

TEST(ServerCallsTest, EachServerHasAReplyOrAnErrorOfItsOwn) {
  FakeControlServer stopped("a", "aaaa");
  FakeControlServer running("b", "bbbb");
  stopped.Stop();
  ServerCalls calls({stopped.address(), running.address()});
  const auto replies = calls.StatusOfEach(kTimeout);
  ASSERT_THAT(replies, SizeIs(2));
  EXPECT_THAT(std::string(replies[0].status().message()),
              HasSubstr("server 0 (" + stopped.address()));
  ASSERT_TRUE(replies[1].ok()) << replies[1].status();
  EXPECT_EQ(replies[1]->accepted_pushes(), 7);
}

TEST(ServerCallsTest, AskStatusDoesNotBlock) {
  FakeControlServer server("a", "aaaa");
  ServerCalls calls({server.address()});
  EXPECT_THAT(calls.latest(), SizeIs(0));
  calls.AskStatus();
  server.asked.WaitForNotification();
  while (calls.latest().empty()) calls.AskStatus();
  EXPECT_EQ(calls.latest()[0].accepted_pushes(), 7);
}

TEST(ServerCallsTest, TheDestructorCancelsPendingCalls) {
  // No server listens on port 1, so the call stays pending until it fails or is cancelled.
  auto calls = std::make_unique<ServerCalls>(std::vector<std::string>{"127.0.0.1:1"});
  calls->AskStatus();
  EXPECT_THAT(calls->latest(), SizeIs(0));
  calls.reset();
}

MastersChunk Chunk(const std::string& tensor, uint64_t offset, const std::string& values) {
  MastersChunk chunk;
  chunk.set_tensor(tensor);
  chunk.set_offset(offset);
  chunk.set_values(values);
  return chunk;
}

TEST(MastersChecksumTest, PiecesMayArriveInAnyOrder) {
  MastersChecksum checksum;
  ASSERT_TRUE(checksum.Add(Chunk("b", 0, "bbbb")).ok());
  ASSERT_TRUE(checksum.Add(Chunk("a", 2, "3333")).ok());
  ASSERT_TRUE(checksum.Add(Chunk("a", 0, "11112222")).ok());
  const std::string whole = "111122223333bbbb";
  EXPECT_EQ(*checksum.Crc32c(), Crc32c(std::as_bytes(std::span(whole))));
  EXPECT_EQ(checksum.value_count(), 4);
}

TEST(MastersChecksumTest, AGapAndAnOverlapAreErrors) {
  MastersChecksum gap;
  ASSERT_TRUE(gap.Add(Chunk("a", 1, "1111")).ok());
  EXPECT_EQ(gap.Crc32c().status().message(),
            "masters of a: gap or overlap (expected value 0, got 1)");
  MastersChecksum overlap;
  ASSERT_TRUE(overlap.Add(Chunk("a", 0, "11112222")).ok());
  ASSERT_TRUE(overlap.Add(Chunk("a", 1, "2222")).ok());
  EXPECT_FALSE(overlap.Crc32c().ok());
}

TEST(MastersChecksumTest, APartOfAValueIsAnError) {
  EXPECT_FALSE(MastersChecksum().Add(Chunk("a", 0, "111")).ok());
}

}  // namespace
}  // namespace thinwire
