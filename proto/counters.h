// Counters are the singular uint64 fields of a protobuf message, such as WorkerCounters. These
// functions handle all counters of a message by reflection, so that no list of counters exists
// beside the .proto file.
#ifndef THINWIRE_PROTO_COUNTERS_H_
#define THINWIRE_PROTO_COUNTERS_H_

#include <google/protobuf/message.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace thinwire {

// Calls `visit` with the name and value of each counter of `message`, in the order of the .proto
// file.
void ForEachCounter(const google::protobuf::Message& message,
                    const std::function<void(const std::string& name, uint64_t value)>& visit);

// Adds each counter of `from` to the same counter of `to`. REQUIRES: both messages have the same
// type.
void AddCounters(const google::protobuf::Message& from, google::protobuf::Message& to);

// CounterArray stores the counters of one message type in an array, for code that runs per message
// or per push. Incrementing a counter uses no reflection. Not thread-safe.
//
//   CounterArray counters(*WorkerCounters::descriptor());
//   counters.Add(WorkerCounters::kReconnectsFieldNumber);
class CounterArray {
 public:
  explicit CounterArray(const google::protobuf::Descriptor& type);

  // Adds N to a counter. REQUIRES: `field_number` belongs to a counter of the message type.
  void Add(int field_number, uint64_t n = 1) { counts_[static_cast<size_t>(field_number)] += n; }

  // Copies all stored counts to the counters of `message`. REQUIRES: `message` has the type given
  // to the constructor.
  void CopyTo(google::protobuf::Message& message) const;

 private:
  std::vector<uint64_t> counts_;  // counts, indexed by field number
};

}  // namespace thinwire

#endif  // THINWIRE_PROTO_COUNTERS_H_
