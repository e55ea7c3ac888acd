#include "server/core/testing/sim_replica.h"

#include "absl/strings/str_cat.h"
#include "common/codec/codec.h"
#include "common/codec/delta/ulp_delta.h"
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
  if (delta.kind == PublishedDelta::Kind::kUlpDelta) {
    const auto changes = UlpDelta::Check(delta.payload, values_.size());
    if (!changes.ok()) return std::string(changes.status().message());
    changes->Apply(values_);
  } else {
    const auto payload = CheckPayload(delta.payload, values_.size());
    if (!payload.ok()) return std::string(payload.status().message());
    if (delta.kind == PublishedDelta::Kind::kAdd) {
      DecodePayloadAdd(*payload, 1.0f, values_);
    } else {
      DecodePayload(*payload, values_);
    }
  }
  if (delta.hash == 0 || delta.hash == HashValues(values_)) return "";
  return absl::StrCat("version ", delta.version.value, " has another hash");
}

}  // namespace thinwire
