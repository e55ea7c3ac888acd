// Scripts that complete the command line of a program in a shell. They are made from the definitions
// of the commands and flags. A script knows the commands, the flags of each command, and the values of
// flags: the names of modes, codecs and models, files, and folders.
#ifndef THINWIRE_CONFIG_COMPLETION_H_
#define THINWIRE_CONFIG_COMPLETION_H_

#include <string>

namespace CLI {
class App;
}

namespace thinwire {

// Returns the script for APP, the command line of the program NAME. SHELL: bash, zsh or fish.
std::string CompletionScript(const CLI::App& app, const std::string& name,
                             const std::string& shell);

// Adds the flag --completion, which prints this script and ends the program. APP must outlive the
// parsing.
void AddCompletionFlag(CLI::App& app, const std::string& name);

}  // namespace thinwire

#endif  // THINWIRE_CONFIG_COMPLETION_H_
