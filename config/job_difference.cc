#include "config/job_difference.h"

#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
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
                                            "keep_checkpoints",
                                            "keep_every",
                                            "keep_best",
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

// Appends a text to DIFFERENCES for each place at which the unknown fields of EXPECTED and GOT
// differ: these messages themselves and the messages in them, except repeated messages and the
// task. PLACE is the path of both messages in the job, such as "task.".
void CompareUnknown(const Message& expected, const Message& got, const std::string& place,
                    std::vector<std::string>& differences) {
  std::string expected_bytes, got_bytes;
  const UnknownFieldSet& of_expected = expected.GetReflection()->GetUnknownFields(expected);
  const UnknownFieldSet& of_got = got.GetReflection()->GetUnknownFields(got);
  if (of_expected.SerializeToString(&expected_bytes) && of_got.SerializeToString(&got_bytes) &&
      expected_bytes != got_bytes) {
    const std::string mine = UnknownNumbers(expected), its = UnknownNumbers(got);
    differences.push_back(Difference(absl::StrCat(place, "unknown field"),
                                     mine.empty() ? "none" : absl::StrCat("number ", mine),
                                     its.empty() ? "none" : absl::StrCat("number ", its)));
  }
  for (int i = 0; i < expected.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *expected.GetDescriptor()->field(i);
    if (field.message_type() == nullptr || field.is_repeated() || field.name() == "task") continue;
    CompareUnknown(expected.GetReflection()->GetMessage(expected, &field),
                   got.GetReflection()->GetMessage(got, &field),
                   absl::StrCat(place, field.name(), "."), differences);
  }
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
  }
  if (differences.empty()) return std::nullopt;
  return absl::StrJoin(differences, "; ");
}

std::span<const std::string_view> FieldsNotCompared() { return kPerProcess; }

}  // namespace thinwire
