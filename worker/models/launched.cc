#include "worker/models/launched.h"

#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/version.h>

#include <exception>
#include <memory>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

// A mark in a stream. Before 2.5 the host could not wait for one, but only for the whole stream.
class Mark {
 public:
  Mark(c10::Device device, const c10::Stream& stream) : stream_(stream), event_(device.type()) {
    event_.record(stream);
  }
  void Wait() const {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 5)
    event_.synchronize();
#else
    stream_.synchronize();
#endif
  }

 private:
  const c10::Stream stream_;
  c10::Event event_;
};

}  // namespace

std::function<absl::Status()> WaitForLaunched(c10::Device device) {
  if (device.is_cpu()) return nullptr;
  const c10::impl::VirtualGuardImpl guard(device.type());
  const auto mark = std::make_shared<const Mark>(device, guard.getStream(device));
  return [mark] {
    try {
      mark->Wait();
    } catch (const std::exception& error) {
      return absl::InternalError(absl::StrCat("backward on the device: ", error.what()));
    }
    return absl::OkStatus();
  };
}

}  // namespace thinwire
