// The manual pages of the programs, in the man(7) language. Their source is the command line that
// CLI11 knows, with the footers of the help texts:
//
//   Examples:                        EXAMPLES; the lines that begin with spaces are commands
//   Exit codes: 0 good, 64 usage.    EXIT STATUS
//   Environment: NO_COLOR ...        ENVIRONMENT
#ifndef THINWIRE_CONFIG_MAN_PAGE_H_
#define THINWIRE_CONFIG_MAN_PAGE_H_

#include <string>

#include "absl/time/time.h"

namespace CLI {
class App;
}

namespace thinwire {

// Returns the page of APP, whose program is installed as NAME, such as "thinwire". The page of a
// subcommand has the name of its program and its own name, such as "thinwire-config". DATE is the
// date of the page.
std::string ManPage(const CLI::App& app, const std::string& name, absl::Time date);

// Adds the flag --man to APP, which prints the page of APP.
void AddManFlag(CLI::App& app, const std::string& name);

}  // namespace thinwire

#endif  // THINWIRE_CONFIG_MAN_PAGE_H_
