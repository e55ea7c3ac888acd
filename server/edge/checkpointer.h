// Checkpointer writes checkpoints of a server while training goes on.
//
//   Start -> strand of each shard: save -> control thread: add run and members -> writer thread:
//   write the files, then remove the part of the log that no recovery needs
//
// A shard saves its state between two events: masters are lent until the next update, other arrays
// are copied. Lives on the job's control thread.
#ifndef THINWIRE_SERVER_EDGE_CHECKPOINTER_H_
#define THINWIRE_SERVER_EDGE_CHECKPOINTER_H_

#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/durable/checkpoint.h"
#include "server/durable/files.h"
#include "server/edge/hosted_model.h"
#include "server/edge/journal.h"

namespace thinwire {

class Checkpointer {
 public:
  // Runs a function later, on the control thread. Thread-safe.
  using Post = std::function<void(std::function<void()>)>;

  // All arguments must outlive this object.
  Checkpointer(Files& files, std::string folder, absl::Duration interval, Journal& journal,
               Post post)
      : files_(files),
        folder_(std::move(folder)),
        interval_(interval),
        journal_(journal),
        post_(std::move(post)) {}
  // Blocks until the current checkpoint is written or has failed.
  ~Checkpointer() { writer_.join(); }

  // Starts a checkpoint of MODEL, unless one is being made. HEAD is called on the control thread
  // when all shards are saved; it returns the checkpoint without shards. A failed checkpoint is
  // logged; the older ones remain.
  void Start(const HostedModel& model, std::function<Checkpoint()> head);
  // Calls Start if the last call was `interval` ago or longer.
  void StartIfDue(absl::Time now, const HostedModel& model, std::function<Checkpoint()> head);

  // Returns the number of completed checkpoints. Thread-safe.
  uint64_t completed_count() const { return completed_count_; }

 private:
  void Write(Checkpoint checkpoint);

  Files& files_;
  const std::string folder_;
  const absl::Duration interval_;
  Journal& journal_;
  const Post post_;
  absl::Time last_start_ = absl::InfinitePast();
  bool running_ = false;
  std::atomic<uint64_t> completed_count_ = 0;
  boost::asio::thread_pool writer_{1};
};

}  // namespace thinwire

#endif  // THINWIRE_SERVER_EDGE_CHECKPOINTER_H_
