// The words of a ServerConfig as core's and the job's own. The config room has checked the fields;
// what core alone can judge (an optimizer's numbers) is judged here.
#ifndef THINWIRE_SERVER_EDGE_CONVERT_CONFIG_H_
#define THINWIRE_SERVER_EDGE_CONVERT_CONFIG_H_

#include <memory>
#include <memory_resource>
#include <optional>

#include "absl/status/statusor.h"
#include "common/clock.h"
#include "common/ids.h"
#include "common/spec/rule.h"
#include "proto/config.pb.h"
#include "server/core/optimizer/optimizer.h"
#include "server/core/optimizer/schedule.h"
#include "server/core/publish/delta_publisher.h"
#include "server/core/update/updater.h"
#include "server/edge/job.h"

namespace thinwire {

// Errors, here and below: InvalidArgument naming the field, what was wanted and what came.
absl::StatusOr<Rule> RuleOf(const Consistency& config);
absl::StatusOr<OptimizerSpec> OptimizerSpecOf(const Optimization& config);
absl::StatusOr<ScheduleSpec> ScheduleSpecOf(const Optimization& config);
absl::StatusOr<SparseUpdateSpec> SparseUpdateSpecOf(const Optimization& config,
                                                    const Compression& compression);
// Nothing if the workers pull masters.
absl::StatusOr<std::optional<PublishOptions>> PublishOptionsOf(const Compression& config);

// A job that nothing has joined yet. CLOCK and MEMORY (JobOptions::memory) outlive it. EPOCH is of
// this start of the server.
absl::StatusOr<std::unique_ptr<Job>> MakeJob(
    const ServerConfig& config, Epoch epoch, Clock& clock,
    std::pmr::memory_resource* memory = std::pmr::get_default_resource());

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_CONVERT_CONFIG_H_
