// The output lines of a worker. Each line is one WorkerEvent as protobuf JSON, with the field names
// of worker_event.proto. 64-bit integers are JSON strings ("41"), as protobuf JSON requires;
// numbers and strings are printed even when they are 0 or empty; unset optional fields are omitted;
// a NaN is the string "NaN".
//
//   {"worker":0,"step":{"step":"41","epoch":0,"examples":"1312","seconds":1.93,"counters":{...},
//                       "waiting":"","loss":0.53}}
#ifndef THINWIRE_PROTO_WORKER_EVENT_JSON_H_
#define THINWIRE_PROTO_WORKER_EVENT_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/worker_event.pb.h"

namespace thinwire {

// Returns the line of `event`, without a newline. Bytes that are not valid UTF-8 are omitted.
std::string PrintWorkerEvent(const WorkerEvent& event);

// Parses a line. Unknown fields are ignored, so that a newer worker's lines can be read.
// Errors: InvalidArgument if it is not a WorkerEvent of a known kind.
absl::StatusOr<WorkerEvent> ParseWorkerEvent(const std::string& line);

}  // namespace thinwire

#endif  // THINWIRE_PROTO_WORKER_EVENT_JSON_H_
