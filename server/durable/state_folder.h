// StateFolder is the folder in which one server of a job keeps its state: DIR/server-N, where DIR
// is the value of --state_dir. A lock prevents that two processes use it at the same time.
#ifndef THINWIRE_SERVER_DURABLE_STATE_FOLDER_H_
#define THINWIRE_SERVER_DURABLE_STATE_FOLDER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "server/durable/files.h"

namespace thinwire {

// Returns the folder that contains the folder PATH: "/data" for "/data/run", "." for "run".
std::string ParentFolder(const std::string& path);

// Returns the path of a server's folder in the state directory ROOT.
std::string StateFolderPath(const std::string& root, ServerId server);

struct StateFolder {
  std::string path;
  std::unique_ptr<FileLock> lock;  // held as long as this object exists
};

// Creates ROOT and the server's folder durably if they do not exist, and locks the folder. FILES
// must outlive the result. Errors: Unavailable if another process uses the folder; errors of the
// file system.
absl::StatusOr<StateFolder> OpenStateFolder(Files& files, const std::string& root, ServerId server);

// Returns the epoch of a new process, or of a job that begins anew in this process, and stores it in
// the file `epoch` of the server's FOLDER. It is NOW in nanoseconds, but at least kEpochDistance
// above the epoch stored before, also if the clock was set back. GENERATION: the job begins from a
// snapshot in memory under this generation, which is stored with the epoch; 0: it does not. Errors:
// those of the file system; DataLoss if the file is damaged.
absl::StatusOr<Epoch> NextEpoch(Files& files, const std::string& folder, absl::Time now,
                                Generation generation = Generation());
// Returns the newest generation that a call of NextEpoch has stored in FOLDER; 0: none. Errors: as
// those of NextEpoch.
absl::StatusOr<Generation> StoredGeneration(Files& files, const std::string& folder);

// The file `relayed` of the FOLDER of an aggregator (docs/sites.md), a RelayedSteps: the servers of the
// upper job have the rounds before NEXT, which is above 0. Before the aggregator passes on a round, it
// calls PrepareRelayed, which writes all that needs room on the disk; afterwards StoreRelayed, which
// replaces the file. ReadRelayed returns 0 without a file. Errors: those of the file system; DataLoss
// if the file is damaged.
absl::Status PrepareRelayed(Files& files, const std::string& folder, Step next);
absl::Status StoreRelayed(Files& files, const std::string& folder);
absl::StatusOr<Step> ReadRelayed(Files& files, const std::string& folder);

// The lead numbers its changes of the rule from its epoch. An earlier process has made fewer.
inline constexpr uint64_t kEpochDistance = uint64_t{1} << 32;

}  // namespace thinwire

#endif  // THINWIRE_SERVER_DURABLE_STATE_FOLDER_H_
