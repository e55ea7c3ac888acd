// OwnedClient: a Client together with everything that must outlive it, for a program in another
// language, whose garbage collector decides how long the parameters stay in use.
#ifndef THINWIRE_PYTHON_OWNED_CLIENT_H_
#define THINWIRE_PYTHON_OWNED_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/client.h"
#include "client/transport/grpc_transport.h"
#include "common/base/ids.h"
#include "common/memory/huge_page_arena.h"
#include "common/model/partition.h"
#include "common/spec/local_steps_spec.h"
#include "common/time/bandwidth_limit.h"
#include "common/time/clock.h"
#include "common/time/executor.h"
#include "config/connection_flags.h"
#include "config/site_job.h"
#include "proto/grpc_credentials.h"
#include "python/job_settings.h"

namespace thinwire {

// A memory resource that can keep freed arrays until its own end. Thread-safe.
class KeptMemory final : public std::pmr::memory_resource {
 public:
  ~KeptMemory() override;

  // From now on, deallocated arrays stay allocated and unchanged until the destructor.
  void Keep();

 private:
  struct Array {
    void* start;
    size_t bytes;
    size_t alignment;
  };

  void* do_allocate(size_t bytes, size_t alignment) override;
  void do_deallocate(void* array, size_t bytes, size_t alignment) override;
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  HugePageArena arena_;
  absl::Mutex mu_;
  bool keeps_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<Array> kept_ ABSL_GUARDED_BY(mu_);
};

// The settings of a worker's process that PythonJob does not contain.
struct WorkerSettings {
  uint32_t worker = 0;
  SiteFlags site;
  uint32_t member = 0;                  // ClientOptions::member
  std::vector<uint32_t> owned_tensors;  // ClientOptions::owned_tensors
  // host:port of every server, separated by commas; in a site that of its aggregator.
  std::string addresses;
  std::string credentials;  // folder; empty: plaintext
  bool insecure = false;
  BandwidthFlags bandwidth;
  std::string state_dir;       // empty: the worker's state is not saved
  uint64_t planned_steps = 0;  // steps of the whole run; 0: unknown
  uint32_t examples = 1;       // examples of a worker's usual step
  LocalStepsSpec local;        // if they are exchanged in fragments
  // Fields of Task (proto/job.proto) in text format, in which all workers must agree.
  std::string task;
};

// Returns a free worker number of the job, which the lead reserves for this process. CONFIG: the path
// of the job file; "": the job has the default start timeout and lease. Of SETTINGS, only the members
// about connections and the state folder are used. PAUSE and errors: see client::ClaimNumber; also
// InvalidArgument for settings that are not valid.
absl::StatusOr<WorkerId> ClaimWorkerNumber(const std::string& config,
                                           const WorkerSettings& settings, Clock& clock,
                                           absl::FunctionRef<bool(absl::Duration)> pause);

// Not thread-safe, except client().Ready and the other thread-safe functions of Client.
class OwnedClient {
 public:
  // THREADS must outlive the result. Errors: InvalidArgument for settings that do not fit the job,
  // with the name of the setting; those of Client::Make and Credentials::Load.
  static absl::StatusOr<std::unique_ptr<OwnedClient>> Make(const PythonJob& job,
                                                           const WorkerSettings& settings,
                                                           std::vector<TensorShape> tensors,
                                                           ExecutorFactory& threads);

  // REQUIRES: Close was not called.
  Client& client() { return *client_; }
  bool closed() const { return client_ == nullptr; }
  // Makes blocking calls of the client, so that the training thread can wait for them and for
  // signals. REQUIRES: Close was not called.
  Executor& caller() { return *caller_; }
  const std::vector<TensorShape>& tensors() const { return tensors_; }
  // Returns the parameters of one tensor, row-major, also after Close.
  std::span<float> replica(uint32_t tensor) const { return replicas_[tensor]; }

  // Ends the client and its threads. The replica's memory stays valid and no longer changes until
  // the destructor. REQUIRES: no call of the client is in progress.
  void Close();

 private:
  OwnedClient(std::vector<std::string> addresses, const Credentials& credentials,
              const Bandwidth& bandwidth)
      : transport_(std::make_unique<GrpcTransport>(std::move(addresses), credentials, bandwidth)) {}

  KeptMemory memory_;
  std::unique_ptr<GrpcTransport> transport_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<Executor> caller_;
  std::vector<TensorShape> tensors_;
  std::vector<std::span<float>> replicas_;
};

}  // namespace thinwire

#endif  // THINWIRE_PYTHON_OWNED_CLIENT_H_
