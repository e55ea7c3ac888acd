// Prints the payloads, hashes and partitions of the C++ code as JSON, for codecs_test.py, which
// compares them with those of the Python client. Floats and payloads are in hexadecimal.
#include <cstdint>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "client/encode/push_encoder.h"
#include "common/codec/codec.h"
#include "common/codec/codec_cases.h"
#include "common/codec/delta/ulp_delta.h"
#include "common/codec/sparse/index_list.h"
#include "common/model/partition.h"
#include "common/model/value_hash.h"

namespace thinwire {
namespace {

using nlohmann::json;
using Floats = std::vector<float>;

std::string Hex(const ByteChain& bytes) {
  std::string text(bytes.size(), '\0');
  bytes.CopyTo(std::as_writable_bytes(std::span(text)));
  return absl::BytesToHexString(text);
}

std::string Hex(std::span<const float> values) {
  return absl::BytesToHexString(
      {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

// Values at the limits of the number formats.
Floats Extremes() {
  using Limits = std::numeric_limits<float>;
  Floats values = {0,
                   Limits::min(),
                   Limits::denorm_min(),
                   Limits::max(),
                   1,
                   448,
                   449,
                   464,
                   480,
                   65504,
                   65519,
                   65520,
                   57344,
                   61440,
                   1e-8f,
                   0x1p-133f,
                   0x1.8p-134f,
                   0x1p-24f};
  const size_t count = values.size();
  for (size_t i = 0; i < count; ++i) values.push_back(-values[i]);
  return values;
}

// Returns the payloads of two pushes of shard 0 of PARTITION by one worker in consecutive steps,
// the second with the residual of the first. FIRST and SECOND are the gradients of the model's only
// tensor.
json Pushes(const CodecSpec& spec, uint32_t worker, const Partition& partition, const Floats& first,
            const Floats& second) {
  const auto encoder =
      client::PushEncoder::Make(partition, {.worker = WorkerId{worker}, .push = spec}).value();
  json pushes = json::array();
  uint64_t step = 5;
  for (const Floats& gradient : {first, second}) {
    const std::span<const float> values(gradient);
    const client::ShardGradient shard = {
        partition.segments(ShardId{0}), {&values, 1}, nullptr, false};
    PushEntry push;
    push.step = Step{step++};
    push.examples = 1;
    if (!encoder->Begin(push, shard).ok()) continue;
    const ByteChain payload = encoder->Finish().value().push.payload;
    const Segment& segment = partition.segments(ShardId{0})[0];
    pushes.push_back({{"step", push.step.value},
                      {"gradient", Hex(values.subspan(segment.offset, segment.count))},
                      {"payload", Hex(payload)},
                      {"decoded", Hex(Decoded(payload, segment.count))}});
  }
  const MatrixRun matrix = partition.MatrixRunOf(ShardId{0});
  return {{"codec", CodecName(spec.id)},
          {"worker", worker},
          {"density", spec.density},
          {"topk_values", CodecName(spec.values)},
          {"topk_indices", static_cast<int>(spec.indices)},
          {"twobit_threshold", spec.twobit_threshold},
          {"qsgd_levels", spec.qsgd_levels},
          {"onebit_group", spec.onebit_group},
          {"powersgd_rank", spec.powersgd_rank},
          {"columns", matrix.columns},
          {"first_column", matrix.first_column},
          {"pushes", std::move(pushes)}};
}

// Returns the pushes of a shard that is a whole matrix of one row.
json Pushes(const CodecSpec& spec, uint32_t worker, const Floats& first, const Floats& second) {
  const auto count = static_cast<int64_t>(first.size());
  return Pushes(spec, worker, Partition::Make({{"w", {1, count}}}, kLargestShardSize, 1).value(),
                first, second);
}

json AllPushes() {
  json all = json::array();
  for (const CodecSpec& spec : AllCodecSpecs()) {
    all.push_back(Pushes(spec, 0, {1.5f}, {-2.25f}));
    all.push_back(Pushes(spec, 3, LogNormal2(13, 1), Gauss(13, 2)));
    all.push_back(Pushes(spec, 1, Extremes(), Gauss(Extremes().size(), 3)));
    all.push_back(Pushes(spec, 3, Gauss(5003, 4), Laplace(5003, 5)));
  }
  for (const CodecSpec& spec : AllCodecSpecs()) {
    if (spec.id != CodecId::kPowerSgd) continue;
    // Shard 0 of the second matrix begins in column 52 of a row.
    const Partition whole = Partition::Make({{"w", {50, 70}}}, 0, 1).value();
    const Partition parts = Partition::Make({{"w", {71, 103}}}, 4096, 1).value();
    all.push_back(Pushes(spec, 3, whole, Gauss(3500, 4), Laplace(3500, 5)));
    all.push_back(Pushes(spec, 3, parts, Laplace(7313, 6), Gauss(7313, 7)));
  }
  // Sums over more than 16 runs of 4,096 values.
  for (const CodecId id : {CodecId::kOneBit, CodecId::kOneBitSign, CodecId::kLloyd1}) {
    all.push_back(Pushes({.id = id}, 2, LogNormal2(70001, 6), Gauss(70001, 7)));
  }
  return all;
}

json Delta(Floats from, const std::vector<uint32_t>& indices, const Floats& changes) {
  Floats to = from;
  for (size_t i = 0; i < indices.size(); ++i) to[indices[i]] = changes[i];
  return {
      {"from", Hex(from)}, {"to", Hex(to)}, {"payload", Hex(EncodeUlpDelta(from, to, indices))}};
}

json AllDeltas() {
  json all = json::array();
  Floats from(64);
  from[3] = 1;
  from[40] = -2;
  // The example of docs/deltas.md.
  all.push_back(Delta(from, {3, 40}, {0x1.000002p0f, -0x1.000002p1f}));
  all.push_back(Delta(from, {}, {}));
  all.push_back(Delta({1}, {0}, {-1}));
  std::vector<uint32_t> every_third, every;
  for (uint32_t i = 0; i < 3000; i += 3) every_third.push_back(i);
  all.push_back(Delta(Gauss(3000, 1), every_third, Gauss(1000, 2)));
  Floats near = Gauss(500, 3);
  for (uint32_t i = 0; i < 500; ++i) {
    every.push_back(i);
    near[i] *= 1 + 1e-6f * static_cast<float>(i + 1);
  }
  all.push_back(Delta(Gauss(500, 3), every, near));
  return all;
}

json AllLists() {
  json all = json::array();
  for (const std::vector<uint32_t>& indices :
       {std::vector<uint32_t>{}, {0}, {99}, {4, 41}, {0, 1, 2, 50, 98, 99}}) {
    all.push_back({{"n", 100}, {"indices", indices}, {"list", Hex(EncodeIndexList(indices, 100))}});
  }
  return all;
}

json AllHashes() {
  json all = json::array();
  for (const size_t count : {1, 4, 7, 1000}) {
    const Floats values = Gauss(count, 8);
    all.push_back({{"values", Hex(values)}, {"hash", absl::StrCat(HashValues(values))}});
  }
  return all;
}

json PartitionOf(const std::vector<TensorShape>& tensors, uint64_t shard_size, uint32_t servers) {
  const Partition partition = Partition::Make(tensors, shard_size, servers).value();
  json shapes = json::array(), shards = json::array();
  for (const TensorShape& tensor : tensors) shapes.push_back({tensor.name, tensor.shape});
  for (uint32_t s = 0; s < partition.shard_count(); ++s) {
    json segments = json::array();
    for (const Segment& segment : partition.segments(ShardId{s})) {
      segments.push_back({segment.tensor, segment.offset, segment.count});
    }
    shards.push_back({{"server", partition.server(ShardId{s}).value}, {"segments", segments}});
  }
  return {{"tensors", shapes},
          {"shard_size", shard_size},
          {"servers", servers},
          {"hash", absl::StrCat(partition.hash())},
          {"shards", shards}};
}

json AllPartitions() {
  json all = json::array();
  // The example of docs/wire.md.
  all.push_back(
      PartitionOf({{"w1", {784, 128}}, {"b1", {128}}, {"w2", {128, 10}}, {"b2", {10}}}, 65536, 2));
  all.push_back(
      PartitionOf({{"w1", {784, 128}}, {"b1", {128}}, {"w2", {128, 10}}, {"b2", {10}}}, 0, 3));
  all.push_back(PartitionOf({{"b", {7}}, {"s", {}}, {"\xc3\xa4", {3}}}, 4, 5));
  all.push_back(PartitionOf({{"a", {10, 10}}, {"b", {10, 10}}, {"c", {5}}, {"d", {1, 1}}}, 33, 3));
  all.push_back(PartitionOf({{"big", {3000, 1000}}, {"c", {5000}}}, 0, 1));
  return all;
}

}  // namespace
}  // namespace thinwire

int main() {
  const nlohmann::json vectors = {{"pushes", thinwire::AllPushes()},
                                  {"deltas", thinwire::AllDeltas()},
                                  {"lists", thinwire::AllLists()},
                                  {"hashes", thinwire::AllHashes()},
                                  {"partitions", thinwire::AllPartitions()}};
  std::puts(vectors.dump().c_str());
  return 0;
}
