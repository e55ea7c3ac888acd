#include "cli/config_command.h"

#include <google/protobuf/message.h>

#include "absl/status/status.h"
#include "proto/config.pb.h"
#include "proto/config_text.h"
#include "proto/text_reader.h"

namespace thinwire {
namespace {

template <typename Config>
size_t ProblemCount(const std::string& text) {
  Config config;
  return ReadText(text, "", config).problems.size();
}

absl::Status CheckText(const std::string& text, const std::string& file, ConfigKind kind) {
  switch (kind) {
    case ConfigKind::kTrain:
      return ParseConfig<TrainConfig>(text, file).status();
    case ConfigKind::kServer:
      return ParseConfig<ServerConfig>(text, file).status();
    case ConfigKind::kWorker:
      return ParseConfig<WorkerConfig>(text, file).status();
  }
  return absl::InternalError("no such kind");
}

}  // namespace

std::optional<ConfigKind> ParseConfigKind(const std::string& name) {
  if (name == "train") return ConfigKind::kTrain;
  if (name == "server") return ConfigKind::kServer;
  if (name == "worker") return ConfigKind::kWorker;
  return std::nullopt;
}

ConfigKind GuessConfigKind(const std::string& text) {
  const size_t train = ProblemCount<TrainConfig>(text);
  const size_t server = ProblemCount<ServerConfig>(text);
  const size_t worker = ProblemCount<WorkerConfig>(text);
  if (train <= server && train <= worker) return ConfigKind::kTrain;
  return server <= worker ? ConfigKind::kServer : ConfigKind::kWorker;
}

ExitCode CheckConfigFiles(const std::vector<std::string>& files, std::optional<ConfigKind> as,
                          std::ostream& out, std::ostream& err) {
  ExitCode code = ExitCode::kOk;
  for (const std::string& file : files) {
    const auto text = ReadTextFile(file);
    const absl::Status status =
        text.ok() ? CheckText(*text, file, as ? *as : GuessConfigKind(*text)) : text.status();
    if (status.ok()) {
      out << file << ": ok" << std::endl;
    } else {
      err << status.message() << std::endl;
      code = ExitCode::kConfig;
    }
  }
  return code;
}

}  // namespace thinwire
