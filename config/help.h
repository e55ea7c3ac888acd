// The --help text of the programs: every line fits the terminal, and a flag's description is below
// its name.
//
//   Consistency:
//     --mode sync|backup|ssp|async
//         sync: every step waits for every live worker. backup: a step waits for the first ...
#ifndef THINWIRE_CONFIG_HELP_H_
#define THINWIRE_CONFIG_HELP_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace thinwire {

// Makes APP, and the subcommands that are added to it later, print help texts of at most COLUMNS
// columns. A line of a footer that begins with spaces is a command and is not wrapped.
void SetHelpFormat(CLI::App& app, size_t columns);

// Returns the number of columns of the terminal that FILE refers to, or 80 if FILE is not a
// terminal.
size_t TerminalColumns(int file);

// Returns TEXT in lines of at most COLUMNS columns that begin with INDENT spaces. Breaks lines at
// spaces only, so a longer word has a line of its own.
std::string Wrapped(std::string_view text, size_t indent, size_t columns);

}  // namespace thinwire

#endif  // THINWIRE_CONFIG_HELP_H_
