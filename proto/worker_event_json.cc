#include "proto/worker_event_json.h"

#include <google/protobuf/util/json_util.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace thinwire {

std::string PrintWorkerEvent(const WorkerEvent& event) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string line;
  // Printing fails only for values outside JSON's range in well-known types, which WorkerEvent does
  // not use.
  (void)google::protobuf::util::MessageToJsonString(event, &line, options);
  return line;
}

absl::StatusOr<WorkerEvent> ParseWorkerEvent(const std::string& line) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  WorkerEvent event;
  const auto status = google::protobuf::util::JsonStringToMessage(line, &event, options);
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker event: ", std::string(status.message())));
  }
  if (event.event_case() == WorkerEvent::EVENT_NOT_SET) {
    return absl::InvalidArgumentError(
        "worker event: no known kind of event (expected joined, step, epoch, waiting, done or "
        "error)");
  }
  return event;
}

}  // namespace thinwire
