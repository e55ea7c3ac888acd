#include "config/job_difference.h"

#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/text/quoted.h"
#include "config/fields.h"

namespace thinwire {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::UnknownFieldSet;

constexpr std::string_view kPerProcess[] = {"device",
                                            "threads",
                                            "data_dir",
                                            "model_file",
                                            "precision",
                                            "straggler",
                                            "silence_seconds",
                                            "report",
                                            "checkpoint_seconds",
                                            "failure_seconds",
                                            "server_return_seconds",
                                            "keep_log",
                                            "drain_seconds"};

bool InTask(const Field& field) { return field.path.front()->name() == "task"; }

std::string Difference(const std::string& field, const std::string& expected,
                       const std::string& got) {
  return absl::StrCat(field, " differs from the job's (expected ", Shortened(expected), ", got ",
                      Shortened(got), ")");
}

// Returns the numbers of the unknown fields of MESSAGE. An enum field with an unknown value counts
// as an unknown field.
std::string UnknownNumbers(const Message& message) {
  const UnknownFieldSet& unknown = message.GetReflection()->GetUnknownFields(message);
  std::vector<int> numbers;
  for (int i = 0; i < unknown.field_count(); ++i) numbers.push_back(unknown.field(i).number());
  return absl::StrJoin(numbers, ", ");
}

// Appends a text to DIFFERENCES if the unknown fields of EXPECTED and GOT differ. PLACE is the path
// of both messages in the job, such as "task.".
void CompareUnknown(const Message& expected, const Message& got, const std::string& place,
                    std::vector<std::string>& differences) {
  std::string expected_bytes, got_bytes;
  const UnknownFieldSet& of_expected = expected.GetReflection()->GetUnknownFields(expected);
  const UnknownFieldSet& of_got = got.GetReflection()->GetUnknownFields(got);
  if (!of_expected.SerializeToString(&expected_bytes) || !of_got.SerializeToString(&got_bytes) ||
      expected_bytes == got_bytes) {
    return;
  }
  const std::string mine = UnknownNumbers(expected), its = UnknownNumbers(got);
  differences.push_back(Difference(absl::StrCat(place, "unknown field"),
                                   mine.empty() ? "none" : absl::StrCat("number ", mine),
                                   its.empty() ? "none" : absl::StrCat("number ", its)));
}

// Returns the parameter groups of JOB with their unknown fields.
std::string GroupsText(const JobConfig& job) {
  std::vector<std::string> groups;
  for (const ParameterGroup& group : job.parameter_group()) {
    groups.push_back(absl::StrCat("{ ", group.ShortDebugString(), " }"));
  }
  return groups.empty() ? "none" : absl::StrJoin(groups, " ");
}

}  // namespace

std::optional<std::string> JobDifference(const JobConfig& expected, const JobConfig& got,
                                         Compared compared) {
  std::vector<std::string> differences;
  const bool task = compared == Compared::kTask;
  for (const Field& field : Settings(*JobConfig::descriptor())) {
    if (InTask(field) != task || std::ranges::count(kPerProcess, field.name()) > 0) continue;
    const std::string mine = ValueText(expected, field), its = ValueText(got, field);
    if (mine != its) differences.push_back(Difference(field.DottedName(), mine, its));
  }
  if (!task) {
    const std::string mine = GroupsText(expected), its = GroupsText(got);
    if (mine != its) differences.push_back(Difference("parameter_group", mine, its));
  }
  if (task) {
    CompareUnknown(expected.task(), got.task(), "task.", differences);
  } else {
    CompareUnknown(expected, got, "", differences);
    CompareUnknown(expected.consistency(), got.consistency(), "consistency.", differences);
    CompareUnknown(expected.optimization(), got.optimization(), "optimization.", differences);
    CompareUnknown(expected.compression(), got.compression(), "compression.", differences);
  }
  if (differences.empty()) return std::nullopt;
  return absl::StrJoin(differences, "; ");
}

}  // namespace thinwire
