#include "server/durable/lead_file.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "proto/deal_check.h"
#include "server/durable/message_file.h"

namespace thinwire {
namespace {

constexpr char kFile[] = "lead";

}  // namespace

absl::Status WriteLeadState(Files& files, const std::string& folder, const LeadState& state) {
  return WriteMessage(files, folder, kFile, state);
}

absl::StatusOr<std::optional<LeadState>> ReadLeadState(Files& files, const std::string& folder,
                                                       RunId run) {
  const std::string path = absl::StrCat(folder, "/", kFile);
  LeadState state;
  const absl::Status read = ReadMessage(files, path, "the decisions of a lead", state);
  if (absl::IsNotFound(read)) return std::nullopt;
  RETURN_IF_ERROR(read);
  // The folder may have held a run that was lost before its first checkpoint.
  if (RunId{state.run()} != run) return std::nullopt;
  uint64_t first_step = 0;
  for (const Deal& deal : state.deals()) {
    if (const absl::Status valid = CheckDeal(deal, kMostDealtWorkers, first_step); !valid.ok()) {
      return absl::DataLossError(absl::StrCat(path, ": ", valid.message()));
    }
    first_step = deal.step();
  }
  return state;
}

}  // namespace thinwire
