// JobWatch asks all servers of a job for their status at a fixed interval and keeps the replies for
// the admin pages. A page therefore costs the job nothing, however often it is read, and never
// waits for a server.
#ifndef THINWIRE_SERVER_ADMIN_JOB_WATCH_H_
#define THINWIRE_SERVER_ADMIN_JOB_WATCH_H_

#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "admin/server_history.h"
#include "common/base/ids.h"
#include "common/time/clock.h"
#include "proto/control.pb.h"

namespace thinwire {

// Asks one server for its status.
struct StatusSource {
  using Done = std::function<void(absl::StatusOr<StatusReply>)>;

  ServerId server;
  // Calls its argument on any thread, or never, if the server stops. Must not block.
  std::function<void(Done)> ask;
};

// Thread-safe.
class JobWatch {
 public:
  // A server with a pending call is not asked again. The source `ask` functions run on the watch's
  // thread. CLOCK must outlive the watch and the sources' calls.
  JobWatch(std::vector<StatusSource> sources, Clock& clock,
           absl::Duration interval = absl::Seconds(1));
  // Ends the watch's thread. Does not wait for pending calls, whose replies are dropped.
  ~JobWatch();
  JobWatch(const JobWatch&) = delete;
  JobWatch& operator=(const JobWatch&) = delete;

  // Returns the histories of the servers, in the order of the sources.
  std::vector<ServerHistory> histories() const;
  // Returns how long the first source has not replied to a call; zero if it has no pending call.
  absl::Duration pending() const;

 private:
  // Shared with the pending calls, which may outlive the watch.
  struct Replies {
    mutable absl::Mutex mu;
    std::vector<ServerHistory> histories ABSL_GUARDED_BY(mu);
    // The start of each source's pending call.
    std::vector<std::optional<absl::Time>> asked ABSL_GUARDED_BY(mu);
    bool stopped ABSL_GUARDED_BY(mu) = false;
  };

  void Run();

  const std::vector<StatusSource> sources_;
  Clock& clock_;
  const absl::Duration interval_;
  const std::shared_ptr<Replies> replies_;
  std::thread thread_;
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_ADMIN_JOB_WATCH_H_
