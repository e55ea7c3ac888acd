// Tests promise 6: no decoder crashes or uses much memory, whatever 1 MB of input it gets. A valid
// input of each decoder is mutated and repeated, with a fixed seed. This program counts the memory
// that operator new allocates.
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/encode/residual_file.h"
#include "common/base/ids.h"
#include "common/codec/payload.h"
#include "common/files/safetensors.h"
#include "common/memory/byte_chain.h"
#include "common/memory/live_bytes.h"
#include "common/model/partition.h"
#include "config/job_text.h"
#include "proto/control.pb.h"
#include "proto/frame.h"
#include "proto/parsed_bytes.h"
#include "server/durable/checkpoint_format.h"
#include "server/durable/event_log.h"
#include "server/durable/log_format.h"
#include "server/durable/log_record.h"
#include "server/durable/testing/faulty_files.h"

namespace thinwire {
namespace {

constexpr size_t kMB = 1'000'000;
constexpr uint32_t kWorkers = 8;
constexpr int kMutations = 300;

// Decodes INPUT. Returns whether it is valid. INPUT is not counted as memory of the decoder.
using Decode = std::function<bool(const std::string& input)>;

std::string Text(const ByteChain& bytes) {
  const std::vector<std::byte> vector = bytes.ToVector();
  return std::string(reinterpret_cast<const char*>(vector.data()), vector.size());
}

ByteChain Chain(const std::string& text) {
  return ByteChain(std::as_bytes(std::span(text.data(), text.size())), nullptr);
}

// Changes INPUT at one to eight places: other bytes, large or small numbers, a part that is
// removed, repeated or moved.
void Mutate(std::mt19937_64& random, std::string& input) {
  const auto below = [&](size_t end) { return end == 0 ? 0 : random() % end; };
  for (size_t count = 1 + below(8); count > 0 && !input.empty(); --count) {
    const size_t at = below(input.size());
    const size_t length = std::min(input.size() - at, size_t{1} << below(12));
    switch (below(6)) {
      case 0:
        input[at] = static_cast<char>(random());
        break;
      case 1:
        input[at] = static_cast<char>(input[at] ^ 1 << below(8));
        break;
      case 2: {
        const uint64_t numbers[] = {0,          1,        0x7fffffff,
                                    0xffffffff, random(), std::numeric_limits<uint64_t>::max()};
        std::memcpy(input.data() + at, &numbers[below(6)], std::min<size_t>(8, input.size() - at));
        break;
      }
      case 3:
        input.erase(at, length);
        break;
      case 4: {
        const std::string part = input.substr(at, length);
        const size_t most = (kMB - std::min(kMB, input.size())) / part.size();
        std::string repeated;
        for (size_t i = below(most + 1); i > 0; --i) repeated += part;
        input.insert(at, repeated);
        break;
      }
      case 5:
        input.insert(below(input.size()), input.substr(at, length));
        break;
    }
  }
  if (input.size() > kMB) input.resize(kMB);
}

// Returns UNIT again and again, up to 1 MB.
std::string Repeat(const std::string& unit) {
  std::string text;
  while (text.size() + unit.size() <= kMB) text += unit;
  return text;
}

// Expects that DECODE accepts VALID, and that mutations of VALID and the inputs HOSTILE take at
// most LIMIT_BYTES and 1 MB of memory.
void ExpectBounded(const std::string& valid, const std::vector<std::string>& hostile,
                   size_t limit_bytes, const Decode& decode) {
  EXPECT_TRUE(decode(valid));
  size_t most = 0;
  const auto run = [&](const std::string& input) {
    ResetPeakBytes();
    const size_t before = LiveBytes();
    decode(input);
    most = std::max(most, PeakBytes() - before);
  };
  std::mt19937_64 random(6);
  int count = 0;
  for (; count < kMutations; ++count) {
    std::string input = valid;
    Mutate(random, input);
    run(input);
  }
  for (const std::string& input : hostile) {
    ASSERT_LE(input.size(), kMB);
    run(input);
    run(valid + input.substr(0, kMB - std::min(kMB, valid.size())));
  }
  EXPECT_EQ(count, kMutations);
  std::printf("most memory for an input of 1 MB: %zu bytes\n", most);
  EXPECT_LE(most, limit_bytes + kMB);
}

PushEntry APush() {
  std::vector<float> values(300, 1.5f);
  std::vector<std::byte> payload(1 + values.size() * sizeof(float));
  payload[0] = std::byte{static_cast<uint8_t>(CodecId::kFp32)};
  std::memcpy(payload.data() + 1, values.data(), values.size() * sizeof(float));
  return {.shard = {3}, .step = {7}, .examples = 4, .payload = ByteChain(std::move(payload))};
}

JoinRequest AJoin() {
  JoinRequest join;
  join.set_job("train");
  join.set_servers(1);
  for (int i = 0; i < 20; ++i) {
    Tensor& tensor = *join.add_tensors();
    tensor.set_name("layer" + std::to_string(i));
    tensor.add_shape(100);
    tensor.add_shape(20);
  }
  join.mutable_config()->set_name("train");
  return join;
}

// A JoinRequest with as many empty tensors as possible, and one with as many dimensions.
std::vector<std::string> HostileJoins() {
  JoinRequest empty;
  empty.add_tensors();
  JoinRequest dimensions;
  Tensor& tensor = *dimensions.add_tensors();
  for (size_t i = 0; i + 1000 < kMB; ++i) tensor.add_shape(1);
  return {Repeat(empty.SerializeAsString()), dimensions.SerializeAsString(),
          Repeat(std::string("\xf8\x07\x01", 3)), Repeat(std::string("\xfa\x07\x00", 3))};
}

TEST(DecoderMemoryTest, Promise6FramesOfWorkers) {
  WorkerFrame frame;
  for (int i = 0; i < 10; ++i) frame.pushes.push_back(APush());
  frame.seeds.push_back({.shard = {1}, .payload = APush().payload});
  frame.reads.push_back({.shard = {2}});
  WorkerFrame reads;
  reads.reads.resize(1);
  const std::string empty = Text(WriteFrame(WorkerFrame()));
  const std::string read = Text(WriteFrame(reads)).substr(empty.size());
  ExpectBounded(Text(WriteFrame(frame)), {Repeat(read)}, kMostEntries * 256,
                [](const std::string& input) { return ParseWorkerFrame(Chain(input)).ok(); });
}

TEST(DecoderMemoryTest, Promise6FramesOfServers) {
  ServerFrame frame;
  for (uint32_t i = 0; i < 10; ++i) {
    frame.verdicts.push_back({.shard = {i}});
    frame.parameters.push_back({.shard = {i}, .payload = APush().payload});
    frame.waits.push_back({.shard = {i}});
  }
  ServerFrame verdicts;
  verdicts.verdicts.resize(1);
  const std::string empty = Text(WriteFrame(ServerFrame()));
  ExpectBounded(Text(WriteFrame(frame)), {Repeat(Text(WriteFrame(verdicts)).substr(empty.size()))},
                kMostEntries * 256,
                [](const std::string& input) { return ParseServerFrame(Chain(input)).ok(); });
}

TEST(DecoderMemoryTest, Promise6Payloads) {
  const std::string valid = Text(APush().payload);
  std::vector<std::string> hostile;
  for (uint8_t codec = 0; codec < 32; ++codec) {
    std::string other = valid;
    other[0] = static_cast<char>(codec);
    hostile.push_back(other);
    hostile.push_back(Repeat(other));
  }
  ExpectBounded(valid, hostile, 2 * kMB,
                [](const std::string& input) { return CheckPayload(Chain(input), 300).ok(); });
}

TEST(DecoderMemoryTest, Promise6Joins) {
  ExpectBounded(
      AJoin().SerializeAsString(), HostileJoins(), kMostParsedBytes, [](const std::string& input) {
        google::protobuf::io::ArrayInputStream bytes(input.data(), static_cast<int>(input.size()));
        return CheckParsedBytes(bytes, *JoinRequest::descriptor()).ok() &&
               JoinRequest().ParseFromString(input);
      });
}

TEST(DecoderMemoryTest, Promise6LogRecords) {
  const std::string valid = Text(EncodeRecord(BeginRecord{.run = {5}, .join = AJoin()}));
  std::vector<std::string> hostile;
  for (const std::string& join : HostileJoins()) {
    LogRecordHead head;
    head.mutable_run()->set_run(5);
    std::string bytes = head.SerializeAsString();
    // Replaces the run by one with the bytes of JOIN as its Join.
    BeginRecord record{.run = {5}};
    (void)record.join.ParseFromString(join.substr(0, join.size() - 100));
    std::string text = Text(EncodeRecord(record));
    if (text.size() <= kMB) hostile.push_back(std::move(text));
  }
  ASSERT_GE(hostile.size(), 2);
  ExpectBounded(valid, hostile, kMostParsedBytes + kMB, [](const std::string& input) {
    return DecodeRecord(Chain(input), kWorkers, [](ShardId) { return std::optional<size_t>(300); })
        .ok();
  });
}

TEST(DecoderMemoryTest, Promise6LogSegments) {
  const ByteChain body = EncodeRecord(ShardRecord{.shard = {1}, .event = LeaveEvent{}});
  std::string valid;
  const auto header = SegmentHeader(1);
  valid.append(reinterpret_cast<const char*>(header.data()), header.size());
  for (LogSequence sequence = 1; sequence <= 20; ++sequence) {
    std::array<std::byte, kRecordHeaderBytes> bytes;
    WriteRecordHeader({.length = static_cast<uint32_t>(body.size()),
                       .checksum = Checksum(body),
                       .sequence = sequence,
                       .commit = sequence},
                      bytes);
    valid.append(reinterpret_cast<const char*>(bytes.data()), bytes.size()).append(Text(body));
  }
  ExpectBounded(valid, {}, 8 * kMB, [](const std::string& input) {
    FaultyFiles files;
    EXPECT_TRUE(files.MakeFolder("log").ok());
    const std::string path = "log/" + SegmentName(1);
    EXPECT_TRUE(files.Create(path).ok());
    const auto bytes = std::as_bytes(std::span(input.data(), input.size()));
    files.SetBytes(path, {bytes.begin(), bytes.end()});
    return ReplayLog(files, "log", 1,
                     [](LogSequence, const ByteChain&) { return absl::OkStatus(); })
        .ok();
  });
}

// The checksum of a manifest is corrected after the mutation. A shard without fields has three
// bytes in the file and about 170 in memory.
TEST(DecoderMemoryTest, Promise6Manifests) {
  Checkpoint checkpoint{.run = {.run = {5}, .join = AJoin()}};
  checkpoint.shards.resize(10);
  const std::string printed = PrintManifest(ManifestOf(checkpoint));
  const std::string body = printed.substr(0, printed.size() - ManifestEnd("").size());
  const auto decode = [](const std::string& input) {
    const auto manifest = ParseManifest(input + ManifestEnd(input));
    if (manifest.ok()) (void)CheckpointOf(*manifest);
    return manifest.ok();
  };
  const std::string open = body.substr(0, body.find('{') + 1);
  ExpectBounded(body,
                {open + "\"shards\":[" + Repeat("{},").substr(0, kMB - 1000) + "{}],\n",
                 open + "\"shards\":" + Repeat("[").substr(0, kMB - 1000),
                 open + "\"unknown\":[" + Repeat("0,").substr(0, kMB - 1000) + "0],\n"},
                64 * kMB, decode);
}

// The JSON library takes up to 60 bytes per byte of the header, which is in a file of the server.
TEST(DecoderMemoryTest, Promise6ShardFiles) {
  SavedShard saved;
  std::vector<float> values(300, 1.0f);
  const auto bytes = std::as_bytes(std::span(values));
  saved.state.store.masters = ByteChain(std::vector<std::byte>(bytes.begin(), bytes.end()));
  saved.state.store.updater.slots.push_back(saved.state.store.masters);
  const auto file = [](const std::string& header) {
    const uint64_t length = header.size();
    return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + header;
  };
  ExpectBounded(
      Text(EncodeShardFile(saved)),
      {file(Repeat("[").substr(0, kMB - 8)), file("{\"a\":[" + Repeat("0,").substr(0, kMB - 100)),
       file("{\"a\":{\"shape\":[" + Repeat("0,").substr(0, kMB - 100)),
       file("{" + Repeat("\"a\":{},").substr(0, kMB - 100))},
      64 * kMB, [](const std::string& input) {
        SavedShard shard;
        return DecodeShardFile(Chain(input), shard).ok();
      });
}

TEST(DecoderMemoryTest, Promise6JobFiles) {
  ExpectBounded("name: \"train\" servers: 2 consistency { mode: sync workers: 4 }\n",
                {Repeat("servers: 1 "), Repeat("task { "), Repeat("x"), Repeat("{"),
                 "name: \"" + std::string(kMB - 100, 'x') + "\""},
                kMostParsedBytes,
                [](const std::string& input) { return ParseJobText(input, "job").ok(); });
}

TEST(DecoderMemoryTest, Promise6ResidualFiles) {
  const Partition partition = *Partition::Make({{"w", {100, 80}}}, 4096, 1);
  const client::ResidualOwner owner{.job = "train", .worker = WorkerId{1}};
  const std::string path = testing::TempDir() + "/residuals";
  const std::vector<float> values(8000, 0.5f);
  std::vector<client::ShardResidualsView> shards;
  for (uint32_t s = 0; s < partition.shard_count(); ++s) {
    shards.push_back({.residual = std::span(values).first(partition.value_count(ShardId{s}))});
  }
  ASSERT_TRUE(client::WriteResiduals(path, owner, partition, {RunId{1}, Step{2}}, shards).ok());
  std::ifstream in(path, std::ios::binary);
  const std::string valid{std::istreambuf_iterator<char>(in), {}};
  ExpectBounded(valid, {}, kMB, [&](const std::string& input) {
    std::ofstream(path, std::ios::binary) << input;
    return client::ReadResiduals(path, owner, partition).ok();
  });
}

}  // namespace
}  // namespace thinwire
