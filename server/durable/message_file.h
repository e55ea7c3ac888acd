// Files that contain one serialized message, such as `rule` and `precision` in the folder of the
// lead.
#ifndef THINWIRE_SERVER_DURABLE_MESSAGE_FILE_H_
#define THINWIRE_SERVER_DURABLE_MESSAGE_FILE_H_

#include <google/protobuf/message_lite.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/durable/files.h"

namespace thinwire {

// Replaces the file NAME in FOLDER by MESSAGE, atomically and durably. Errors: those of the file
// system.
absl::Status WriteMessage(Files& files, const std::string& folder, const std::string& name,
                          const google::protobuf::MessageLite& message);

// Writes MESSAGE to the file NAME.tmp, which PutPreparedFile (files.h) gives the name NAME. Errors: those
// of the file system.
absl::Status PrepareMessage(Files& files, const std::string& folder, const std::string& name,
                            const google::protobuf::MessageLite& message);

// Sets MESSAGE to that of the file PATH. Errors: NotFound; DataLoss "PATH: not EXPECTED" if the file
// is damaged; other errors of the file system.
absl::Status ReadMessage(Files& files, const std::string& path, std::string_view expected,
                         google::protobuf::MessageLite& message);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_DURABLE_MESSAGE_FILE_H_
