// TextTable: a table for a terminal.
#ifndef THINWIRE_CLI_TERMINAL_TABLE_H_
#define THINWIRE_CLI_TERMINAL_TABLE_H_

#include <span>
#include <string>
#include <vector>

namespace thinwire {

// Returns a line with the names of the columns and a line for each row. The first column is aligned
// at the left, the others at the right. REQUIRES: every row has as many cells as COLUMNS.
std::string TextTable(std::span<const std::string> columns,
                      std::span<const std::vector<std::string>> rows);

}  // namespace thinwire

#endif  // THINWIRE_CLI_TERMINAL_TABLE_H_
