// The ids of a job. Each kind of id is a type of its own, so that the compiler rejects a step where
// a version is expected.
//
//   WorkerId ServerId ShardId    numbered from 0
//   Step                         the number of a step: one batch and one gradient of a worker
//   Version                      the number of updates that a shard has applied
//   Generation                   increases whenever a job lost acknowledged state
//   RunId                        identifies one life of a job, from its first Join until a server
//                                loses the job's state; 0: none
//   Epoch                        identifies one start of a server process
//   Incarnation                  identifies a process among those with the same worker number;
//                                increases with every new process
#ifndef THINWIRE_COMMON_BASE_IDS_H_
#define THINWIRE_COMMON_BASE_IDS_H_

#include <compare>
#include <cstdint>
#include <ostream>
#include <utility>

namespace thinwire {

template <typename Tag, typename Rep>
struct Number {
  Rep value = 0;

  auto operator<=>(const Number&) const = default;

  Number operator+(Rep n) const { return Number{static_cast<Rep>(value + n)}; }
  Number& operator++() {
    ++value;
    return *this;
  }
  // REQUIRES: other <= *this.
  Rep operator-(Number other) const { return static_cast<Rep>(value - other.value); }

  template <typename H>
  friend H AbslHashValue(H h, Number n) {
    return H::combine(std::move(h), n.value);
  }
  friend std::ostream& operator<<(std::ostream& out, Number n) { return out << n.value; }
};

using WorkerId = Number<struct WorkerTag, uint32_t>;
using ServerId = Number<struct ServerTag, uint32_t>;
using ShardId = Number<struct ShardTag, uint32_t>;
using Step = Number<struct StepTag, uint64_t>;
using Version = Number<struct VersionTag, uint64_t>;
using Generation = Number<struct GenerationTag, uint64_t>;
using RunId = Number<struct RunTag, uint64_t>;
using Epoch = Number<struct EpochTag, uint64_t>;
using Incarnation = Number<struct IncarnationTag, uint64_t>;

}  // namespace thinwire

#endif  // THINWIRE_COMMON_BASE_IDS_H_
