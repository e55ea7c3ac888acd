// SaveRequests performs the requests for a checkpoint of this server now (SaveCheckpointRequest).
//
//   request of a step      ends with the checkpoint of this step, which may be there already
//   request of no step     ends with the first checkpoint that is started after the request
//
// A request that cannot be started, because the shards are still being saved for an earlier
// checkpoint, is started by a later Tick. Lives on the job's control thread.
#ifndef THINWIRE_SERVER_PROTOCOLS_CHECKPOINTS_SAVE_REQUESTS_H_
#define THINWIRE_SERVER_PROTOCOLS_CHECKPOINTS_SAVE_REQUESTS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "server/protocols/checkpoints/checkpointer.h"
#include "server/shards/hosted_model.h"

namespace thinwire {

class SaveRequests {
 public:
  using Done = std::function<void(const absl::StatusOr<SavedSteps>&)>;

  // CHECKPOINTER must outlive this object.
  explicit SaveRequests(Checkpointer& checkpointer) : checkpointer_(checkpointer) {}

  // Requests a checkpoint of MODEL, and calls DONE once when it is on disk. Errors:
  // ResourceExhausted if the disk does not take it; Aborted if the shards were saved at another
  // step than STEP; DeadlineExceeded after LIMIT; the status of Cancel.
  void Add(std::optional<Step> step, absl::Time now, absl::Duration limit, const HostedModel& model,
           Done done);
  // Starts the checkpoints of waiting requests, and ends the requests whose time is over.
  void Tick(absl::Time now, const HostedModel& model);
  // Ends the requests that wait for checkpoint NUMBER of the checkpointer, which has ended.
  void Ended(uint64_t number, const absl::StatusOr<SavedSteps>& result);
  // Ends all requests with STATUS.
  void Cancel(const absl::Status& status);

 private:
  struct Request {
    std::optional<Step> step;
    absl::Time deadline;
    absl::Duration limit;
    Done done;
    uint64_t number = 0;  // of the checkpoint that ends the request; 0: not started yet
  };

  void Start(const HostedModel& model);
  // Returns why REQUEST has not ended yet.
  std::string ReasonOf(const Request& request, const HostedModel& model) const;
  // Removes the requests for which ENDS returns true, and returns them.
  std::vector<Request> Take(const std::function<bool(const Request&)>& ends);

  Checkpointer& checkpointer_;
  std::vector<Request> requests_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_PROTOCOLS_CHECKPOINTS_SAVE_REQUESTS_H_
