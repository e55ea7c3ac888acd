#include "server/core/testing/sim_replica.h"

#include "absl/strings/str_cat.h"
#include "common/codec/codec.h"
#include "common/codec/moves.h"
#include "common/value_hash.h"

namespace thinwire {

std::string SimReplica::Apply(const DeltaChain& chain) {
  if (chain.empty()) return "an answer of nothing";
  for (const auto& delta : chain) {
    if (std::string wrong = Apply(*delta); !wrong.empty()) return wrong;
  }
  return "";
}

std::string SimReplica::Apply(const PublishedDelta& delta) {
  if (delta.kind == PublishedDelta::Kind::kFull) {
    values_.resize((delta.payload.size() - 1) / sizeof(float));
  } else if (delta.base != held_) {
    return absl::StrCat("a delta from version ", delta.base.value, ", which is not held");
  }
  const bool same = delta.kind != PublishedDelta::Kind::kFull && delta.base == delta.version;
  held_ = delta.version;
  if (same) return "";
  const bool moves = delta.kind == PublishedDelta::Kind::kMove;
  const absl::Status status = moves ? CheckMoves(delta.payload, values_.size())
                                    : CheckPayload(delta.payload, values_.size());
  if (!status.ok()) return std::string(status.message());
  if (moves) {
    ApplyMoves(delta.payload, values_);
  } else if (delta.kind == PublishedDelta::Kind::kAdd) {
    DecodePayloadAdd(delta.payload, 1.0f, values_);
  } else {
    DecodePayload(delta.payload, values_);
  }
  if (delta.hash == 0 || delta.hash == HashValues(values_)) return "";
  return absl::StrCat("version ", delta.version.value, " has another hash");
}

}  // namespace thinwire
