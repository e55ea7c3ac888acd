#include "client/encode/codec_choice.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

namespace thinwire::client {

std::vector<CodecSpec> CandidatesOf(TensorKind kind, std::span<const CodecSpec> codecs) {
  std::vector<CodecSpec> candidates = {{.id = CodecId::kFp32}};
  for (const CodecSpec& spec : codecs) {
    const bool fits = kind != TensorKind::kVectors || CarriesParameters(spec.id);
    if (fits && spec.id != CodecId::kFp32) candidates.push_back(spec);
  }
  return candidates;
}

double DecodeShare(uint32_t worker_count, uint32_t server_count) {
  return std::max(1.0, static_cast<double>(worker_count) / static_cast<double>(server_count));
}

double SecondsPerValue(const CodecCost& cost, double goodput) {
  return cost.bytes / goodput + cost.encode_seconds + cost.decode_seconds;
}

size_t FastestCodec(std::span<const CodecCost> costs, double goodput) {
  size_t fastest = 0;
  for (size_t i = 1; i < costs.size(); ++i) {
    if (SecondsPerValue(costs[i], goodput) < SecondsPerValue(costs[fastest], goodput)) fastest = i;
  }
  return fastest;
}

size_t PreferredCodec(std::span<const CodecCost> costs, double goodput) {
  const double least = SecondsPerValue(costs[FastestCodec(costs, goodput)], goodput);
  size_t index = 0;
  while (SecondsPerValue(costs[index], goodput) > (1 + CodecChoice::kTolerance) * least) ++index;
  return index;
}

CodecChoice::CodecChoice(ChoiceRule rule, std::vector<CodecCost> costs)
    : rule_(rule), costs_(std::move(costs)) {}

bool CodecChoice::Update(double goodput) {
  if (rule_ == ChoiceRule::kFastest) {
    return !decided_ && Choose(FastestCodec(costs_, goodput), goodput);
  }
  const size_t preferred = PreferredCodec(costs_, goodput);
  if (!decided_ && preferred == current_) return Choose(current_, goodput);
  const double now = SecondsPerValue(costs_[current_], goodput);
  const double then = SecondsPerValue(costs_[preferred], goodput);
  // A less exact codec is better than the current codec only if the current codec takes longer by
  // more than the fraction kGain. A more exact codec is better if it is not slower.
  const bool better =
      preferred > current_ ? now > (1 + kGain) * then : preferred < current_ && then <= now;
  better_count_ = better ? better_count_ + 1 : 0;
  return better_count_ >= kPatience && Choose(preferred, goodput);
}

bool CodecChoice::Choose(size_t index, double goodput) {
  current_ = index;
  decided_ = true;
  better_count_ = 0;
  const auto add = [&](size_t i, const char* unit) {
    absl::StrAppendFormat(&reason_, "%s %.3g%s", std::string(CodecName(costs_[i].spec.id)),
                          1e9 * SecondsPerValue(costs_[i], goodput), unit);
  };
  reason_ = absl::StrFormat("at %.1f MB/s: ", 1e-6 * goodput);
  add(current_, " ns a value");
  for (size_t i = 0; i < costs_.size(); ++i) {
    if (i == current_) continue;
    reason_ += ", ";
    add(i, "");
  }
  return true;
}

}  // namespace thinwire::client
