#include "server/durable/rule_file.h"

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "server/durable/message_file.h"

namespace thinwire {
namespace {

constexpr char kFile[] = "rule";

}  // namespace

absl::Status WriteRule(Files& files, const std::string& folder, const SetModeRequest& request) {
  return WriteMessage(files, folder, kFile, request);
}

absl::StatusOr<std::optional<SetModeRequest>> ReadRule(Files& files, const std::string& folder,
                                                       RunId run) {
  SetModeRequest request;
  const absl::Status read =
      ReadMessage(files, absl::StrCat(folder, "/", kFile), "a consistency rule", request);
  if (absl::IsNotFound(read)) return std::nullopt;
  RETURN_IF_ERROR(read);
  // The folder may have held a run that was lost before its first checkpoint.
  if (RunId{request.run()} != run) return std::nullopt;
  return request;
}

}  // namespace thinwire
