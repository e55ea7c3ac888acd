#include "admin/status_table.h"

#include "absl/strings/str_cat.h"
#include "admin/html.h"

namespace thinwire {

std::string SectionHtml(const std::string& heading, const StatusTable& table) {
  return absl::StrCat(html::Heading(heading), html::Table(table.columns, table.rows));
}

StatusTable BytesTable(const TrafficBytes& gradients, const TrafficBytes& parameters,
                       bool estimated) {
  const auto row = [estimated](const char* name, const TrafficBytes& bytes) {
    return std::vector<std::string>{
        name, html::BytesText(bytes.payload_bytes),
        absl::StrCat(estimated ? "about " : "", html::BytesText(bytes.fp32_bytes)),
        html::RatioText(bytes.fp32_bytes, bytes.payload_bytes)};
  };
  return {.columns = {"direction", "payloads", "in fp32", "ratio"},
          .rows = {row("gradients", gradients), row("parameters", parameters)}};
}

StatusTable BytesTable(const WorkerCounters& counters) {
  return BytesTable({counters.push_bytes_encoded(), counters.push_bytes_raw()},
                    {counters.pull_bytes_encoded(), counters.pull_bytes_raw()},
                    /*estimated=*/false);
}

}  // namespace thinwire
