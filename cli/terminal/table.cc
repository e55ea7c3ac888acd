#include "cli/terminal/table.h"

#include <algorithm>
#include <cstddef>

namespace thinwire {
namespace {

std::string Line(std::span<const std::string> cells, std::span<const size_t> widths) {
  std::string line = cells[0] + std::string(widths[0] - cells[0].size(), ' ');
  for (size_t i = 1; i < cells.size(); ++i) {
    line.append(2 + widths[i] - cells[i].size(), ' ');
    line.append(cells[i]);
  }
  return line + "\n";
}

}  // namespace

std::string TextTable(std::span<const std::string> columns,
                      std::span<const std::vector<std::string>> rows) {
  std::vector<size_t> widths;
  for (const std::string& column : columns) widths.push_back(column.size());
  for (const std::vector<std::string>& row : rows) {
    for (size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text = Line(columns, widths);
  for (const std::vector<std::string>& row : rows) text += Line(row, widths);
  return text;
}

}  // namespace thinwire
