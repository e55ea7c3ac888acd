// SimReplica: a shard's published values as one process of a simulated cluster holds them, brought
// up to date as docs/wire.md wants it. Not thread-safe.
#ifndef THINWIRE_SERVER_CORE_TESTING_SIM_REPLICA_H_
#define THINWIRE_SERVER_CORE_TESTING_SIM_REPLICA_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/ids.h"
#include "server/core/read_form.h"
#include "server/core/version_log.h"

namespace thinwire {

class SimReplica {
 public:
  // Applies CHAIN; returns what is wrong with it, or nothing.
  std::string Apply(const DeltaChain& chain);

  // How the next read asks for what is missing.
  ReadForm form() const { return held_ ? ReadForm::Since(*held_) : ReadForm::Published(); }
  std::optional<Version> held() const { return held_; }
  std::span<const float> values() const { return values_; }

 private:
  std::string Apply(const PublishedDelta& delta);

  std::vector<float> values_;
  std::optional<Version> held_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_CORE_TESTING_SIM_REPLICA_H_
