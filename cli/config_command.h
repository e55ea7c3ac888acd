// `thinwire config check FILE...`: tells whether configurations are good, or all that is wrong with
// them.
#ifndef THINWIRE_CLI_CONFIG_COMMAND_H_
#define THINWIRE_CLI_CONFIG_COMMAND_H_

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "common/exit_code.h"

namespace thinwire {

enum class ConfigKind { kTrain, kServer, kWorker };

// "train", "server", "worker".
std::optional<ConfigKind> ParseConfigKind(const std::string& name);

// The kind whose fields the text is most likely made of; train if that is open.
ConfigKind GuessConfigKind(const std::string& text);

// Writes "FILE: ok" to OUT or every problem to ERR, file by file. AS: what they are; without it
// each one is guessed.
ExitCode CheckConfigFiles(const std::vector<std::string>& files, std::optional<ConfigKind> as,
                          std::ostream& out, std::ostream& err);

}  // namespace thinwire

#endif  // THINWIRE_CLI_CONFIG_COMMAND_H_
