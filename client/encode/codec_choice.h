// CodecChoice: chooses the codec that transfers a group of tensors in the least time. It is a pure
// state machine: callers pass the costs of the codecs and the goodput of the network.
//
//   seconds per value = bytes / goodput + encode + decode
//
// The formula assumes that transfer and computation do not overlap. An expensive codec is therefore
// chosen only if it saves time even on a machine without an idle core. Candidates are in order of
// preference: fp32 first, then the other codecs from the most to the least exact.
//
//   kAuto      the first candidate whose time exceeds the time of the fastest candidate by at most
//              the fraction kTolerance. This candidate replaces the current codec only after it was
//              better in kPatience updates in a row. A less exact candidate is better if the
//              current codec takes longer by more than the fraction kGain. A more exact candidate
//              is better if it is not slower.
//   kFastest   the fastest candidate at the first update, for the whole run (the "Fastest" rule of
//              AdaPrec, which benchmarks the network once and then fixes each layer's codec)
//
// Before the goodput is known, the chosen codec is the first candidate.
#ifndef THINWIRE_CLIENT_ENCODE_CODEC_CHOICE_H_
#define THINWIRE_CLIENT_ENCODE_CODEC_CHOICE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/codec/table.h"
#include "common/model/tensor_kind.h"
#include "common/spec/push_spec.h"

namespace thinwire::client {

// The cost of a codec per value, measured on this machine. decode_seconds is the server's time to
// decode one value. CodecTuner multiplies it by the number of workers per server, because a server
// decodes the values of all workers.
struct CodecCost {
  CodecSpec spec;
  double bytes = 4;
  double encode_seconds = 0;
  double decode_seconds = 0;
};

// Returns fp32 and those of CODECS that tensors of KIND may use. fp32 is always a candidate, so that
// it can be chosen if it is the fastest codec. Vectors use dense codecs of 8 bits or more only
// (docs/decisions/0041).
std::vector<CodecSpec> CandidatesOf(TensorKind kind, std::span<const CodecSpec> codecs);
// Returns the number by which a server's time to decode one value is multiplied: a server decodes
// the pushes of all workers for its own shards.
double DecodeShare(uint32_t worker_count, uint32_t server_count);

// Returns the time to encode, send and decode one value, in seconds. GOODPUT is in bytes per
// second. REQUIRES: goodput > 0.
double SecondsPerValue(const CodecCost& cost, double goodput);
// Returns the index of the fastest codec. REQUIRES: costs is not empty.
size_t FastestCodec(std::span<const CodecCost> costs, double goodput);
// Returns the index of the first codec whose time exceeds the fastest codec's time by at most the
// fraction kTolerance. REQUIRES: costs is not empty.
size_t PreferredCodec(std::span<const CodecCost> costs, double goodput);

// Not thread-safe.
class CodecChoice {
 public:
  static constexpr double kTolerance = 0.03;
  static constexpr double kGain = 0.05;
  static constexpr int kPatience = 3;

  // REQUIRES: costs is not empty.
  CodecChoice(ChoiceRule rule, std::vector<CodecCost> costs);

  // Updates the chosen codec for a network with a goodput of GOODPUT bytes per second, which must
  // be positive. Returns true if the chosen codec changed, or if it was chosen for the first time
  // by its speed.
  bool Update(double goodput);

  const CodecSpec& spec() const { return costs_[current_].spec; }
  // Returns the reason for the chosen codec as text: "at 118.2 MB/s: fp8_e4m3 10.3 ns a value, fp32
  // 33.9, bf16 18.2".
  const std::string& reason() const { return reason_; }

 private:
  bool Choose(size_t index, double goodput);

  const ChoiceRule rule_;
  const std::vector<CodecCost> costs_;
  size_t current_ = 0;
  bool decided_ = false;
  int better_count_ = 0;  // consecutive Update() calls that preferred another
  std::string reason_ = "nothing measured yet";
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_ENCODE_CODEC_CHOICE_H_
