#include "cli/doctor/candidates.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "client/encode/codec_speed.h"
#include "client/options/client_options.h"
#include "common/base/status_macros.h"
#include "common/codec/codec.h"
#include "common/codec/payload.h"
#include "common/codec/table.h"
#include "common/memory/byte_chain.h"
#include "common/spec/job_spec.h"
#include "config/applicability.h"
#include "config/job.h"
#include "proto/job.pb.h"

namespace thinwire {
namespace {

using client::CodecCost;

// The codecs of a job's pushes and pulls.
struct CodecPair {
  std::string push;
  std::string pull;
  CodecSpec push_spec;
  CodecSpec pull_spec;
};

CodecPair PairOf(const JobConfig& config, const JobSpec& spec) {
  CodecPair pair = {.push = Compression::Codec::Value_Name(config.compression().push()),
                    .pull = Compression::Codec::Value_Name(config.compression().pull()),
                    .push_spec = spec.push.codec,
                    .pull_spec = {.id = spec.pull_codec}};
  if (spec.publish.has_value()) pair.pull_spec = *spec.publish->codec;
  return pair;
}

bool IsPredictable(const JobSpec& spec) {
  return !spec.push.choose.has_value() &&
         (!spec.publish.has_value() || spec.publish->codec.has_value());
}

// Returns the codecs of JOB with another push codec and PULL; nullopt if the job is not valid with
// them. Removes settings that have no effect with these codecs.
std::optional<CodecPair> WithCodecs(JobText job, CodecId push, Compression::Codec::Value pull) {
  Compression& compression = *job.config.mutable_compression();
  compression.set_push(static_cast<Compression::Codec::Value>(push));
  compression.set_pull(pull);
  job.places["push"] = "--push";
  job.places["pull"] = "--pull";
  DropReplacedFields(job.config, job.places);
  const absl::StatusOr<JobSpec> spec = CheckJob(job.config);
  if (!spec.ok() || !IsPredictable(*spec)) return std::nullopt;
  return PairOf(job.config, *spec);
}

// Returns the pull codec that belongs to a push codec: the same one, or its deltas.
Compression::Codec::Value PullOf(const CodecRow& row) {
  const std::string name(row.name);
  Compression::Codec::Value pull = Compression::Codec::fp32;
  Compression::Codec::Value_Parse(row.carries_parameters ? name : "delta_" + name, &pull);
  return pull;
}

std::vector<float> NormalValues(size_t count) {
  std::minstd_rand random(1);
  std::normal_distribution<float> normal(0, 1e-3f);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

absl::StatusOr<double> ErrorOf(const CodecSpec& spec, const std::vector<float>& values) {
  ASSIGN_OR_RETURN(const std::unique_ptr<const Codec> codec, MakeCodec(spec));
  std::vector<std::byte> bytes(codec->MaxPayloadBytes(values.size()));
  bytes.resize(codec->Encode(values, RandomKeys(), bytes));
  std::vector<float> decoded(values.size());
  DecodePayload(EncodedPayload(ByteChain(std::move(bytes)), values.size()), decoded);
  double error = 0;
  double norm = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    error += std::pow(double{decoded[i]} - double{values[i]}, 2);
    norm += std::pow(double{values[i]}, 2);
  }
  return std::sqrt(error / norm);
}

}  // namespace

absl::StatusOr<std::vector<CodecCandidate>> MeasureCandidates(const JobText& job,
                                                              uint64_t shard_values, Clock& clock) {
  ASSIGN_OR_RETURN(const JobSpec own, CheckJob(job.config, job.places));
  std::vector<CodecPair> pairs;
  if (IsPredictable(own)) pairs.push_back(PairOf(job.config, own));
  for (const CodecRow& row : CodecTable()) {
    std::optional<CodecPair> pair = WithCodecs(job, row.id, PullOf(row));
    if (!pair.has_value()) pair = WithCodecs(job, row.id, job.config.compression().pull());
    if (!pair.has_value()) continue;
    const auto is_same = [&pair](const CodecPair& other) {
      return other.push == pair->push && other.pull == pair->pull;
    };
    if (std::ranges::none_of(pairs, is_same)) pairs.push_back(*std::move(pair));
  }
  ClientOptions options;
  options.error_feedback = own.push.error_feedback;
  options.correction = own.push.correction;
  const std::vector<float> values = NormalValues(shard_values);
  std::vector<CodecCandidate> candidates;
  for (CodecPair& pair : pairs) {
    const std::vector<CodecSpec> specs = {pair.push_spec, pair.pull_spec};
    ASSIGN_OR_RETURN(const std::vector<CodecCost> costs,
                     client::MeasureCodecs(specs, shard_values, options, nullptr, clock));
    ASSIGN_OR_RETURN(const double error, ErrorOf(pair.push_spec, values));
    candidates.push_back({.push = std::move(pair.push),
                          .pull = std::move(pair.pull),
                          .push_cost = costs[0],
                          .pull_cost = costs[1],
                          .error = error});
  }
  return candidates;
}

}  // namespace thinwire
