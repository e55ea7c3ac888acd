#include "proto/frame.h"

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "proto/parameter_service.pb.h"

namespace thinwire {
namespace {

using Random = std::mt19937_64;

ByteChain ChainOf(const std::string& bytes) {
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
  return ByteChain(std::vector<std::byte>(begin, begin + bytes.size()));
}

std::string StringOf(const ByteChain& chain) {
  const std::vector<std::byte> bytes = chain.ToVector();
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// Returns BYTES as a chain of pieces of 1 to 9 bytes.
ByteChain Cut(const std::string& bytes, Random& random) {
  const ByteChain whole = ChainOf(bytes);
  ByteChain cut;
  for (size_t at = 0; at < bytes.size();) {
    const size_t length = std::min<size_t>(bytes.size() - at, 1 + random() % 9);
    cut.Append(whole.Sub(at, length));
    at += length;
  }
  return cut;
}

// Returns a number whose size in bits is random, and 0 in at least a quarter of the calls.
uint64_t Any64(Random& random) { return random() % 4 == 0 ? 0 : random() >> random() % 64; }
uint32_t Any32(Random& random) { return static_cast<uint32_t>(Any64(random)); }
bool AnyBool(Random& random) { return random() % 2 == 0; }
float AnyFactor(Random& random) {
  return AnyBool(random) ? 1 : static_cast<float>(random() % 9) / 4;
}

ByteChain AnyPayload(Random& random) {
  std::string bytes(random() % 3 == 0 ? 0 : random() % 300, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return Cut(bytes, random);
}

WorkerFrame AnyWorkerFrame(Random& random) {
  WorkerFrame frame{{Any32(random)}, {Any64(random)}, {Any64(random)}, {Any64(random)}, {}, {}, {}};
  for (uint64_t n = random() % 4; n > 0; --n) {
    frame.seeds.push_back({{Any32(random)}, AnyPayload(random)});
  }
  for (uint64_t n = random() % 4; n > 0; --n) {
    frame.pushes.push_back({{Any32(random)},
                            {Any64(random)},
                            Any32(random),
                            Any32(random),
                            {Any64(random)},
                            {Any64(random)},
                            Any32(random),
                            AnyFactor(random),
                            AnyBool(random),
                            AnyPayload(random)});
  }
  for (uint64_t n = random() % 4; n > 0; --n) {
    frame.reads.push_back(
        {{Any32(random)}, {Any64(random)}, {Any64(random)}, Any32(random), AnyBool(random)});
  }
  frame.member = Any32(random);
  return frame;
}

ServerFrame AnyServerFrame(Random& random) {
  ServerFrame frame{{Any64(random)}, {Any64(random)}, {}, {}, {}};
  for (uint64_t n = random() % 4; n > 0; --n) {
    frame.verdicts.push_back({{Any32(random)},
                              {Any64(random)},
                              static_cast<uint32_t>(random() % 9),
                              AnyBool(random),
                              {Any64(random)},
                              {Any64(random)}});
  }
  for (uint64_t n = random() % 4; n > 0; --n) {
    frame.parameters.push_back({{Any32(random)},
                                {Any64(random)},
                                {Any64(random)},
                                {Any64(random)},
                                static_cast<uint32_t>(random() % 3),
                                {Any64(random)},
                                AnyBool(random),
                                Any64(random),
                                AnyPayload(random),
                                Any32(random),
                                AnyBool(random),
                                AnyPayload(random)});
  }
  for (uint64_t n = random() % 4; n > 0; --n) {
    WaitingEntry wait{{Any32(random)}, {Any64(random)}, {Any64(random)}, {},
                      AnyBool(random), Any32(random),   Any32(random),   AnyBool(random)};
    for (uint64_t m = random() % 5; m > 0; --m) wait.workers.push_back({Any32(random)});
    frame.waits.push_back(wait);
  }
  return frame;
}

// Converts a message of the generated protobuf class to a frame.
WorkerFrame FrameOf(const WorkerMessage& message) {
  WorkerFrame frame{{message.worker()},
                    {message.incarnation()},
                    {message.generation()},
                    {message.epoch()},
                    {},
                    {},
                    {},
                    message.member()};
  for (const Seed& s : message.seeds()) frame.seeds.push_back({{s.shard()}, ChainOf(s.payload())});
  for (const Push& p : message.pushes()) {
    frame.pushes.push_back({{p.shard()},
                            {p.step()},
                            p.examples(),
                            p.late_examples(),
                            {p.computed_version()},
                            {p.held_version()},
                            p.read_codec(),
                            p.has_rate_factor() ? p.rate_factor() : 1,
                            p.follows(),
                            ChainOf(p.payload())});
  }
  for (const Read& r : message.reads()) {
    frame.reads.push_back(
        {{r.shard()}, {r.step()}, {r.held_version()}, r.read_codec(), r.follows()});
  }
  return frame;
}

ServerFrame FrameOf(const ServerMessage& message) {
  ServerFrame frame{{message.generation()}, {message.epoch()}, {}, {}, {}};
  for (const PushVerdict& v : message.verdicts()) {
    frame.verdicts.push_back({{v.shard()},
                              {v.step()},
                              static_cast<uint32_t>(v.kind()),
                              v.again(),
                              {v.frontier()},
                              {v.version()}});
  }
  for (const Parameters& p : message.parameters()) {
    frame.parameters.push_back({{p.shard()},
                                {p.step()},
                                {p.version()},
                                {p.base_version()},
                                static_cast<uint32_t>(p.kind()),
                                {p.frontier()},
                                p.more(),
                                p.published_hash(),
                                ChainOf(p.selected()),
                                p.steps_ahead(),
                                p.holds_pushes(),
                                ChainOf(p.payload())});
  }
  for (const Waiting& w : message.waits()) {
    WaitingEntry wait{{w.shard()},  {w.step()}, {w.frontier()}, {},
                      w.unseeded(), w.live(),   w.wanted(),     w.seed()};
    for (uint32_t worker : w.workers()) wait.workers.push_back({worker});
    frame.waits.push_back(wait);
  }
  return frame;
}

TEST(FrameTest, RandomFramesRoundTripInAnyPieces) {
  Random random(1);
  for (int i = 0; i < 300; ++i) {
    const WorkerFrame worker = AnyWorkerFrame(random);
    const auto worker_again = ParseWorkerFrame(Cut(StringOf(WriteFrame(worker)), random));
    ASSERT_TRUE(worker_again.ok()) << worker_again.status();
    ASSERT_EQ(*worker_again, worker);
    const ServerFrame server = AnyServerFrame(random);
    const auto server_again = ParseServerFrame(Cut(StringOf(WriteFrame(server)), random));
    ASSERT_TRUE(server_again.ok()) << server_again.status();
    ASSERT_EQ(*server_again, server);
  }
}

TEST(FrameTest, AGeneratedClassReadsAndWritesTheSameBytes) {
  Random random(2);
  for (int i = 0; i < 300; ++i) {
    const WorkerFrame worker = AnyWorkerFrame(random);
    WorkerMessage worker_message;
    ASSERT_TRUE(worker_message.ParseFromString(StringOf(WriteFrame(worker))));
    ASSERT_EQ(FrameOf(worker_message), worker);
    ASSERT_EQ(ParseWorkerFrame(Cut(worker_message.SerializeAsString(), random)).value(), worker);
    const ServerFrame server = AnyServerFrame(random);
    ServerMessage server_message;
    ASSERT_TRUE(server_message.ParseFromString(StringOf(WriteFrame(server))));
    ASSERT_EQ(FrameOf(server_message), server);
    ASSERT_EQ(ParseServerFrame(Cut(server_message.SerializeAsString(), random)).value(), server);
  }
}

TEST(FrameTest, WritesWhatTheGeneratedClassWrites) {
  Random random(3);
  for (int i = 0; i < 100; ++i) {
    const std::string bytes = StringOf(WriteFrame(AnyWorkerFrame(random)));
    WorkerMessage message;
    ASSERT_TRUE(message.ParseFromString(bytes));
    ASSERT_EQ(message.SerializeAsString(), bytes);
  }
}

TEST(FrameTest, PayloadsAreSharedAndNeverCopied) {
  const ByteChain payload = ChainOf(std::string(5000, 'x'));
  WorkerFrame frame;
  PushEntry& push = frame.pushes.emplace_back();
  push.shard = {3};
  push.payload = payload;
  const ByteChain written = WriteFrame(frame);
  ASSERT_EQ(written.pieces().size(), 2u);
  EXPECT_EQ(written.pieces()[1].bytes.data(), payload.pieces()[0].bytes.data());
  const WorkerFrame parsed = ParseWorkerFrame(written).value();
  ASSERT_EQ(parsed.pushes[0].payload.pieces().size(), 1u);
  EXPECT_EQ(parsed.pushes[0].payload.pieces()[0].bytes.data(), payload.pieces()[0].bytes.data());
  EXPECT_EQ(parsed.pushes[0].payload.pieces()[0].owner, payload.pieces()[0].owner);
}

TEST(FrameTest, EveryTruncationIsAnErrorOrAnotherFrame) {
  Random random(4);
  const WorkerFrame frame = AnyWorkerFrame(random);
  const std::string whole = StringOf(WriteFrame(frame));
  size_t errors = 0;
  for (size_t length = 0; length < whole.size(); ++length) {
    const std::string part = whole.substr(0, length);
    const auto parsed = ParseWorkerFrame(Cut(part, random));
    WorkerMessage message;
    ASSERT_EQ(parsed.ok(), message.ParseFromString(part)) << length;
    if (parsed.ok()) {
      EXPECT_EQ(*parsed, FrameOf(message));
      EXPECT_FALSE(*parsed == frame);
    } else {
      EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
      ++errors;
    }
  }
  EXPECT_GT(errors, whole.size() / 2);
}

TEST(FrameTest, MutatedFramesParseLikeTheGeneratedClass) {
  Random random(5);
  size_t accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = StringOf(i % 2 == 0 ? WriteFrame(AnyWorkerFrame(random))
                                            : WriteFrame(AnyServerFrame(random)));
    for (uint64_t n = 1 + random() % 4; n > 0 && !bytes.empty(); --n) {
      bytes[random() % bytes.size()] = static_cast<char>(random() >> random() % 8);
    }
    WorkerMessage worker_message;
    if (worker_message.ParseFromString(bytes)) {
      const auto parsed = ParseWorkerFrame(Cut(bytes, random));
      ASSERT_TRUE(parsed.ok()) << i << ": " << parsed.status();
      // A mutated rate factor may be NaN, which equals nothing, so the written bytes are compared.
      ASSERT_EQ(StringOf(WriteFrame(*parsed)), StringOf(WriteFrame(FrameOf(worker_message)))) << i;
      ++accepted;
    }
    ServerMessage server_message;
    if (server_message.ParseFromString(bytes)) {
      const auto parsed = ParseServerFrame(Cut(bytes, random));
      ASSERT_TRUE(parsed.ok()) << i << ": " << parsed.status();
      ASSERT_EQ(*parsed, FrameOf(server_message)) << i;
      ++accepted;
    }
  }
  EXPECT_GT(accepted, 1000u);
}

TEST(FrameTest, UnknownFieldsOfEveryTypeAreSkipped) {
  // Unknown fields of every wire type: field 100 is a varint, field 101 a fixed64, field 102 bytes,
  // field 103 a group that contains a varint and another group, and field 104 a fixed32.
  const std::string unknown(
      "\xa0\x06\x05"
      "\xa9\x06\x01\x02\x03\x04\x05\x06\x07\x08"
      "\xb2\x06\x03"
      "abc"
      "\xbb\x06\x08\x01\x13\x14\xbc\x06"
      "\xc5\x06\x01\x02\x03\x04");
  WorkerFrame frame;
  frame.worker = {7};
  const auto parsed = ParseWorkerFrame(ChainOf(unknown + StringOf(WriteFrame(frame)) + unknown));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, frame);
}

TEST(FrameTest, WaitingWorkersMayBePackedOrNot) {
  const std::string packed("\x2a\x05\x22\x03\x01\x02\x03", 7);
  const std::string one_by_one("\x2a\x06\x20\x01\x20\x02\x20\x03", 8);
  const std::vector<WorkerId> want = {{1}, {2}, {3}};
  EXPECT_EQ(ParseServerFrame(ChainOf(packed)).value().waits[0].workers, want);
  EXPECT_EQ(ParseServerFrame(ChainOf(one_by_one)).value().waits[0].workers, want);
}

TEST(FrameTest, ErrorsNameTheByteAndTheExpectedContent) {
  EXPECT_EQ(ParseWorkerFrame(ChainOf(std::string("\x32\x05\x08", 3))).status().message(),
            "byte 2: the message is too short (expected 5 more bytes, got 1)");
  EXPECT_EQ(ParseWorkerFrame(ChainOf("\x08\xff")).status().message(),
            "byte 2: the message ends inside a varint");
  EXPECT_EQ(ParseWorkerFrame(ChainOf("\x08" + std::string(11, '\xff'))).status().message(),
            "byte 11: varint is too long (expected at most 10 bytes)");
  EXPECT_EQ(ParseWorkerFrame(ChainOf("\x0f")).status().message(),
            "byte 1: invalid wire type (expected 0 to 5, got 7)");
}

TEST(FrameTest, TooManyEntriesAreRefusedEarly) {
  std::string bytes;
  for (size_t i = 0; i < kMostEntries; ++i) bytes += std::string("\x3a\x00", 2);
  EXPECT_EQ(ParseWorkerFrame(ChainOf(bytes)).value().reads.size(), kMostEntries);
  bytes += std::string("\x2a\x00", 2);
  EXPECT_EQ(ParseWorkerFrame(ChainOf(bytes)).status().message(),
            "byte 131073: too many entries (expected at most 65536)");
  EXPECT_EQ(ParseWorkerFrame(ChainOf(bytes), 3).status().message(),
            "byte 7: too many entries (expected at most 3)");
}

TEST(FrameTest, ManyNestedGroupsAreRefused) {
  EXPECT_FALSE(ParseWorkerFrame(ChainOf(std::string(100000, '\x5b'))).ok());
}

}  // namespace
}  // namespace thinwire
