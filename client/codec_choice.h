// CodecChoice: which of several codecs brings a group of tensors over the wire first. A value and
// pure functions: what they go by is handed in.
//
//   seconds per value = bytes / goodput + encode + decode
//
// as if no two of them overlapped: so a codec that computes is taken only where it wins even on a
// machine without a core to spare. Candidates stand in the order in which they are preferred, the
// most exact first, raw fp32 before all others.
//
//   kAuto      the first that is within kTolerance of the fastest; another one only once it has
//              been faster than the one in use by more than kGain for kPatience updates in a row
//   kFastest   the fastest at the first update, for good (AdaPrec's "Fastest", fixed per layer by a
//              benchmark on the wire at hand)
//
// Until the goodput is known it is the first candidate.
#ifndef THINWIRE_CLIENT_CODEC_CHOICE_H_
#define THINWIRE_CLIENT_CODEC_CHOICE_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "common/codec/table.h"

namespace thinwire {

enum class ChoiceRule { kAuto, kFastest };

namespace client {

// What a codec costs for one value, seconds on this machine. DECODE is all that the server does for
// this worker's value.
struct CodecCost {
  CodecSpec spec;
  double bytes = 4;
  double encode_seconds = 0;
  double decode_seconds = 0;
};

// REQUIRES: goodput > 0, bytes per second.
double SecondsPerValue(const CodecCost& cost, double goodput);
// The place of the fastest. REQUIRES: costs is not empty.
size_t FastestCodec(std::span<const CodecCost> costs, double goodput);
// The first place that is within kTolerance of it.
size_t PreferredCodec(std::span<const CodecCost> costs, double goodput);

// Not thread-safe.
class CodecChoice {
 public:
  static constexpr double kTolerance = 0.03;
  static constexpr double kGain = 0.05;
  static constexpr int kPatience = 3;

  // REQUIRES: costs is not empty.
  CodecChoice(ChoiceRule rule, std::vector<CodecCost> costs);

  // GOODPUT is what the wire carries now, above 0. True: the choice or its first reason changed.
  bool Update(double goodput);

  const CodecSpec& spec() const { return costs_[current_].spec; }
  // For a person: "at 118.2 MB/s: fp8_e4m3 10.3 ns a value, fp32 33.9, bf16 18.2".
  const std::string& reason() const { return reason_; }

 private:
  bool Take(size_t place, double goodput);

  const ChoiceRule rule_;
  const std::vector<CodecCost> costs_;
  size_t current_ = 0;
  bool decided_ = false;
  int better_count_ = 0;  // updates in a row that another one won clearly
  std::string reason_ = "nothing measured yet";
};

}  // namespace client
}  // namespace thinwire

#endif  // THINWIRE_CLIENT_CODEC_CHOICE_H_
