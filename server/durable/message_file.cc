#include "server/durable/message_file.h"

#include <cstddef>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/memory/array_bytes.h"
#include "common/memory/byte_chain.h"

namespace thinwire {
namespace {

ByteChain BytesOf(const google::protobuf::MessageLite& message) {
  const std::string text = message.SerializeAsString();
  return CopyArray(std::as_bytes(std::span(text)));
}

}  // namespace

absl::Status WriteMessage(Files& files, const std::string& folder, const std::string& name,
                          const google::protobuf::MessageLite& message) {
  return ReplaceFile(files, folder, name, BytesOf(message));
}

absl::Status PrepareMessage(Files& files, const std::string& folder, const std::string& name,
                            const google::protobuf::MessageLite& message) {
  return PrepareFile(files, folder, name, BytesOf(message));
}

absl::Status ReadMessage(Files& files, const std::string& path, std::string_view expected,
                         google::protobuf::MessageLite& message) {
  ASSIGN_OR_RETURN(const ByteChain file, files.Read(path));
  const std::vector<std::byte> bytes = file.ToVector();
  if (message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(path, ": not ", std::string(expected)));
}

}  // namespace thinwire
