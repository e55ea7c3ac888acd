// ProxyThread runs a FaultProxy in a thread of its own, for tests. Thread-safe.
#ifndef THINWIRE_TESTS_FAULT_PROXY_PROXY_THREAD_H_
#define THINWIRE_TESTS_FAULT_PROXY_PROXY_THREAD_H_

#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/fault_proxy/fault_proxy.h"

namespace thinwire {

class ProxyThread {
 public:
  // Errors: those of FaultProxy::Start.
  static absl::StatusOr<std::unique_ptr<ProxyThread>> Start(const ProxyOptions& options);
  // Closes all connections and joins the thread.
  ~ProxyThread();
  ProxyThread(const ProxyThread&) = delete;
  ProxyThread& operator=(const ProxyThread&) = delete;

  // Blocks until COMMAND (wire_faults.h) is applied. Errors: InvalidArgument.
  absl::Status Command(std::string_view command);
  ProxyCounts counts();
  const std::string& address() const { return proxy_->address(); }

 private:
  ProxyThread() = default;
  template <typename Function>
  void RunOnThread(const Function& function);

  boost::asio::io_context io_;
  std::unique_ptr<FaultProxy> proxy_;
  std::thread thread_;
};

}  // namespace thinwire

#endif  // THINWIRE_TESTS_FAULT_PROXY_PROXY_THREAD_H_
