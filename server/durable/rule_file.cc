#include "server/durable/rule_file.h"

#include <cstddef>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/memory/array_bytes.h"
#include "common/memory/byte_chain.h"
#include "common/status_macros.h"

namespace thinwire {
namespace {

constexpr char kFile[] = "rule";

}  // namespace

absl::Status WriteRule(Files& files, const std::string& folder, const SetModeRequest& request) {
  const std::string text = request.SerializeAsString();
  return ReplaceFile(files, folder, kFile, CopyArray(std::as_bytes(std::span(text))));
}

absl::StatusOr<std::optional<SetModeRequest>> ReadRule(Files& files, const std::string& folder,
                                                       RunId run) {
  const std::string path = absl::StrCat(folder, "/", kFile);
  const absl::StatusOr<ByteChain> file = files.Read(path);
  if (absl::IsNotFound(file.status())) return std::nullopt;
  RETURN_IF_ERROR(file.status());
  const std::vector<std::byte> bytes = file->ToVector();
  SetModeRequest request;
  if (!request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::DataLossError(absl::StrCat(path, ": not a consistency rule"));
  }
  // The folder may have held a run that was lost before its first checkpoint.
  if (RunId{request.run()} != run) return std::nullopt;
  return request;
}

}  // namespace thinwire
