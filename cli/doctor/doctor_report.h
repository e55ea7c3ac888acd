// The measurements and the predictions of `thinwire doctor`, as text and as JSON.
#ifndef THINWIRE_CLI_DOCTOR_DOCTOR_REPORT_H_
#define THINWIRE_CLI_DOCTOR_DOCTOR_REPORT_H_

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "cli/doctor/candidates.h"
#include "cli/doctor/link.h"
#include "cli/doctor/prediction.h"
#include "server/durable/disk_speed.h"

namespace thinwire {

struct MeasuredLink {
  std::string address;
  LinkSpeed speed;
};

struct DoctorReport {
  std::vector<MeasuredLink> links;
  std::optional<DiskSpeed> disk;
  // The time of a step of the running job; nullopt: no running job.
  std::optional<absl::Duration> measured_step;
  std::vector<CodecCandidate> candidates;
  // Set if everything is known that a prediction needs.
  std::optional<StepConditions> conditions;
  std::vector<StepPrediction> predictions;  // of each candidate; empty without `conditions`
  std::vector<std::string> notes;           // what is missing or assumed
};

// Returns tables that fit 80 columns. With predictions, they replace the table of the codecs, and
// the codec to choose follows.
std::string DoctorText(const DoctorReport& report);
nlohmann::ordered_json DoctorJson(const DoctorReport& report);

}  // namespace thinwire

#endif  // THINWIRE_CLI_DOCTOR_DOCTOR_REPORT_H_
