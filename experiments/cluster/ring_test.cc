#include "experiments/cluster/ring.h"

#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/codec/codec.h"
#include "kernels/mix_bits.h"
#include "proto/experiment.pb.h"

namespace thinwire::lab {
namespace {

constexpr double kMegabit = 1e6;

std::unique_ptr<const Codec> CodecOf(CodecId id) { return MakeCodec({.id = id}).value(); }

// Returns gradients with values between -1 and 1.
std::vector<std::vector<float>> RandomGradients(size_t worker_count, size_t value_count) {
  std::vector<std::vector<float>> gradients(worker_count, std::vector<float>(value_count));
  uint64_t key = 0;
  for (std::vector<float>& gradient : gradients) {
    for (float& value : gradient) {
      value = static_cast<float>(static_cast<int64_t>(kernels::MixBits(++key))) * 0x1p-63f;
    }
  }
  return gradients;
}

// Returns the time at which each worker is done if worker w begins at BEGIN[w].
std::vector<absl::Duration> DoneTimes(const std::vector<absl::Duration>& begin, size_t value_count,
                                      CodecId codec, const LinkSpec& link,
                                      const Machines& machines = {}) {
  VirtualTime queue;
  LinkModel network(std::vector<LinkSpec>(begin.size(), link), queue);
  std::vector<absl::Duration> done(begin.size(), absl::InfiniteDuration());
  Ring ring(value_count, begin.size(), CodecOf(codec), CodecCosts(machines), queue, network,
            [&](size_t worker) { done[worker] = queue.elapsed(); });
  for (size_t w = 0; w < begin.size(); ++w) queue.At(begin[w], [&ring, w] { ring.Begin(w); });
  while (!queue.empty()) queue.RunNext();
  return done;
}

// The ring with a copy of the values at every worker, message by message. Returns the values of
// every worker at the end.
std::vector<std::vector<float>> RunMessageByMessage(const Codec& codec,
                                                    std::vector<std::vector<float>> values) {
  const size_t workers = values.size();
  const auto part = [&](size_t worker, size_t chunk) {
    const auto [first, count] = RingChunkOf(chunk % workers, values[0].size(), workers);
    return std::span(values[worker % workers]).subspan(first, count);
  };
  const auto encoded = [&](std::span<const float> sent) {
    std::vector<std::byte> bytes(codec.MaxPayloadBytes(sent.size()));
    bytes.resize(codec.Encode(sent, {}, bytes));
    return EncodedPayload(ByteChain(std::move(bytes)), sent.size());
  };
  for (size_t round = 0; round + 1 < workers; ++round) {
    std::vector<CheckedPayload> messages;
    for (size_t w = 0; w < workers; ++w) {
      messages.push_back(encoded(part(w, w + workers - round)));
    }
    for (size_t w = 0; w < workers; ++w) {
      DecodePayloadAdd(messages[w], 1, part(w + 1, w + workers - round));
    }
  }
  for (size_t w = 0; w < workers; ++w) {
    const CheckedPayload complete = encoded(part(w, w + 1));
    for (size_t other = 0; other < workers; ++other) DecodePayload(complete, part(other, w + 1));
  }
  return values;
}

TEST(RingTest, TimeOfAStepFollowsTheFormula) {
  const LinkSpec link = {.bits_per_second = 100 * kMegabit, .latency = absl::Microseconds(50)};
  for (const size_t workers : {2, 3, 4, 8, 16}) {
    const size_t chunk_bytes = 1 + 4 * 1000;
    const double seconds = 2 * static_cast<double>(workers - 1) *
                           (100e-6 + 8.0 * static_cast<double>(chunk_bytes) / (100 * kMegabit));
    const std::vector<absl::Duration> done =
        DoneTimes(std::vector<absl::Duration>(workers), 1000 * workers, CodecId::kFp32, link);
    for (const absl::Duration time : done) {
      EXPECT_NEAR(absl::ToDoubleSeconds(time), seconds, 1e-7) << workers << " workers";
    }
  }
}

TEST(RingTest, WorkerThatBeginsLateHoldsBackTheOthers) {
  const LinkSpec link = {.latency = absl::Milliseconds(1)};  // 2 ms for each message
  const std::vector<absl::Duration> done =
      DoneTimes({absl::ZeroDuration(), absl::Seconds(10)}, 8, CodecId::kFp32, link);
  // Worker 1 has received its predecessor's chunk long ago. It sends two messages at once; worker 0
  // completes its chunk with the first and answers.
  EXPECT_EQ(done[0], absl::Seconds(10) + absl::Milliseconds(2));
  EXPECT_EQ(done[1], absl::Seconds(10) + absl::Milliseconds(4));
}

TEST(RingTest, EncodingAndDecodingTakeTimeAtEveryHop) {
  Machines machines;
  CodecCost& cost = *machines.add_codec_cost();
  cost.set_codec(Compression::Codec::int8);
  cost.set_encode_ns_per_value(3);
  cost.set_decode_ns_per_value(5);
  const std::vector<absl::Duration> done =
      DoneTimes({absl::ZeroDuration(), absl::ZeroDuration()}, 200, CodecId::kInt8, {}, machines);
  // Both chunks of 100 values are encoded and decoded twice.
  EXPECT_EQ(done[0], absl::Nanoseconds(2 * 100 * (3 + 5)));
  EXPECT_EQ(done[1], done[0]);
}

TEST(RingTest, SingleWorkerSendsNothing) {
  EXPECT_EQ(DoneTimes({absl::Seconds(1)}, 5, CodecId::kInt8, {})[0], absl::Seconds(1));
  const std::vector<std::vector<float>> gradients = RandomGradients(1, 5);
  std::vector<float> sum(5);
  SumRingChunk(*CodecOf(CodecId::kInt8), 0, gradients, sum);
  EXPECT_EQ(sum, gradients[0]);
}

TEST(RingTest, AllWorkersHaveTheSameBits) {
  size_t checked = 0;
  for (const CodecId id : {CodecId::kFp32, CodecId::kFp16, CodecId::kInt8}) {
    const auto codec = CodecOf(id);
    for (const size_t workers : {2, 3, 5, 8}) {
      const std::vector<std::vector<float>> gradients = RandomGradients(workers, 1003);
      std::vector<float> sum(1003);
      for (size_t chunk = 0; chunk < workers; ++chunk) {
        SumRingChunk(*codec, chunk, gradients, sum);
      }
      for (const std::vector<float>& values : RunMessageByMessage(*codec, gradients)) {
        EXPECT_EQ(values, sum) << codec->MaxPayloadBytes(1) << ", " << workers << " workers";
        ++checked;
      }
    }
  }
  EXPECT_EQ(checked, 3 * (2 + 3 + 5 + 8));
}

TEST(RingTest, Fp32AddsExactly) {
  const std::vector<std::vector<float>> gradients = {{1, 2, 3, 4}, {10, 20, 30, 40}, {-5, 6, 7, 8}};
  std::vector<float> sum(4);
  for (size_t chunk = 0; chunk < 3; ++chunk) {
    SumRingChunk(*CodecOf(CodecId::kFp32), chunk, gradients, sum);
  }
  EXPECT_EQ(sum, (std::vector<float>{6, 28, 40, 52}));
}

TEST(RingTest, MessagesHaveTheSizeOfTheirPayloads) {
  const std::vector<std::vector<float>> gradients = RandomGradients(1, 77);
  for (const CodecId id : {CodecId::kFp32, CodecId::kFp16, CodecId::kInt8}) {
    const auto codec = CodecOf(id);
    std::vector<std::byte> bytes(codec->MaxPayloadBytes(77));
    EXPECT_EQ(codec->Encode(gradients[0], {}, bytes), bytes.size());
  }
}

}  // namespace
}  // namespace thinwire::lab
