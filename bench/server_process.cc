#include "bench/server_process.h"

#include <glog/logging.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <optional>

#include "common/spec/rule.h"
#include "common/time/clock.h"
#include "proto/grpc_credentials.h"
#include "server/core/optimizer/optimizer.h"
#include "server/core/optimizer/schedule.h"
#include "server/job/job.h"
#include "server/job/job_threads.h"
#include "server/rpc/listener.h"

namespace thinwire {

ServerProcess::ServerProcess(absl::FunctionRef<void(int)> serve) {
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  pid_ = fork();
  CHECK_GE(pid_, 0);
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(ends[0]);
    serve(ends[1]);
    _exit(1);
  }
  close(ends[1]);
  char text[64];
  const ssize_t length = read(ends[0], text, sizeof(text));
  CHECK_GT(length, 0) << "the server did not start";
  address_.assign(text, static_cast<size_t>(length));
  close(ends[0]);
}

ServerProcess::~ServerProcess() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Announce(int pipe, const std::string& address) {
  CHECK_EQ(write(pipe, address.data(), address.size()), static_cast<ssize_t>(address.size()));
  while (true) pause();
}

void ServeJob(int pipe, uint32_t workers, const std::string& credentials) {
  SteadyClock clock;
  JobOptions options;
  options.rule = Rule::Sync(workers);
  options.epoch = Epoch{1};
  options.group_updates = {{*MakeOptimizer({}), *Schedule::Make({})}};
  JobThreads threads;
  Job job(options, clock, threads.executors());
  job.StartTicking(absl::Seconds(1));
  const auto listener =
      *Listener::Start(job, "127.0.0.1:0", *Credentials::Load(credentials, std::nullopt));
  Announce(pipe, listener->address());
}

double CoreSeconds(pid_t process) {
  clockid_t clock;
  timespec used;
  CHECK_EQ(clock_getcpuclockid(process, &clock), 0);
  CHECK_EQ(clock_gettime(clock, &used), 0);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

}  // namespace thinwire
