#include "experiments/cluster/fastest_codecs.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>

#include "absl/time/time.h"
#include "client/encode/codec_choice.h"
#include "common/base/ids.h"
#include "common/model/tensor_kind.h"
#include "experiments/cluster/codec_costs.h"

namespace thinwire::lab {
namespace {

// Returns the bytes per second of a worker's pushes.
double GoodputOf(const RunSpec& spec) {
  const auto rate = [](const Link& link) {
    const double megabits = link.megabits_per_second();
    return megabits > 0 ? megabits * 1e6 / 8 : std::numeric_limits<double>::infinity();
  };
  const double worker = rate(spec.machines.worker_link());
  if (spec.machines.servers_beside_workers()) return worker;
  const double servers = rate(spec.machines.server_link()) * spec.job.server_count;
  return std::min(worker, servers / spec.job.rule.workers);
}

CodecSpec FastestOf(const RunSpec& spec, TensorKind kind, uint64_t value_count) {
  const CodecCosts costs(spec.machines);
  const auto count = static_cast<double>(value_count);
  const double share = client::DecodeShare(spec.job.rule.workers, spec.job.server_count);
  std::vector<client::CodecCost> candidates;
  for (const CodecSpec& codec : client::CandidatesOf(kind, spec.job.push.candidates)) {
    const auto made = MakeCodec(codec);
    if (!made.ok()) continue;  // JobSpec::Validate reports it
    candidates.push_back(
        {.spec = codec,
         .bytes = static_cast<double>((*made)->MaxPayloadBytes(value_count)) / count,
         .encode_seconds = absl::ToDoubleSeconds(costs.Encode(codec.id, value_count)) / count,
         .decode_seconds =
             share * absl::ToDoubleSeconds(costs.Decode(codec.id, value_count)) / count});
  }
  return candidates[client::FastestCodec(candidates, GoodputOf(spec))].spec;
}

}  // namespace

std::vector<CodecSpec> FastestCodecs(const RunSpec& spec, const Partition& partition) {
  std::map<TensorKind, CodecSpec> fastest;
  for (const auto& [kind, value_count] : LargestShards(partition)) {
    fastest[kind] = FastestOf(spec, kind, value_count);
  }
  std::vector<CodecSpec> codecs;
  for (uint32_t s = 0; s < partition.shard_count(); ++s) {
    codecs.push_back(fastest[TensorKindOf(partition, ShardId{s})]);
  }
  return codecs;
}

}  // namespace thinwire::lab
