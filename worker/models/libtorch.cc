#include "worker/models/libtorch.h"

#include <ATen/autocast_mode.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <glog/logging.h>
#include <torch/version.h>

#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

#define THINWIRE_TORCH_AT_LEAST(major, minor) \
  (TORCH_VERSION_MAJOR > (major) ||           \
   (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))

namespace thinwire {
namespace {

// LibTorch 2.4 replaced its autocast functions for single device types with functions that have a
// device argument.
#if THINWIRE_TORCH_AT_LEAST(2, 4)

void SetPrecision(c10::DeviceType device, c10::ScalarType precision) {
  at::autocast::set_autocast_dtype(device, precision);
}

void SetEnabled(c10::DeviceType device, bool enabled) {
  at::autocast::set_autocast_enabled(device, enabled);
}

#else

void SetPrecision(c10::DeviceType device, c10::ScalarType precision) {
  if (device == c10::kCPU) {
    at::autocast::set_autocast_cpu_dtype(precision);
  } else {
    at::autocast::set_autocast_gpu_dtype(precision);
  }
}

void SetEnabled(c10::DeviceType device, bool enabled) {
  if (device == c10::kCPU) {
    at::autocast::set_cpu_enabled(enabled);
  } else {
    at::autocast::set_enabled(enabled);
  }
}

#endif

// A position in a device's stream of work. Wait() blocks the host until the device has reached the
// position. Before LibTorch 2.5 the host could not wait for an event, so Wait() waits for the whole
// stream.
class Mark {
 public:
  Mark(c10::Device device, const c10::Stream& stream) : stream_(stream), event_(device.type()) {
    event_.record(stream);
  }
  void Wait() const {
#if THINWIRE_TORCH_AT_LEAST(2, 5)
    event_.synchronize();
#else
    stream_.synchronize();
#endif
  }

 private:
  const c10::Stream stream_;
  c10::Event event_;
};

// Returns the line of MESSAGE that names the error: the last line of a traceback of TorchScript,
// and the first line of other messages.
std::string SentenceOf(absl::string_view message) {
  const std::vector<absl::string_view> lines =
      absl::StrSplit(message, '\n', absl::SkipWhitespace());
  if (lines.empty()) return "";
  const bool traceback = absl::StrContains(message, "Traceback of TorchScript");
  return std::string(traceback ? lines.back() : lines.front());
}

}  // namespace

std::string FormText(const at::Tensor& tensor) {
  return absl::StrCat(at::toString(tensor.scalar_type()), " [", absl::StrJoin(tensor.sizes(), ", "),
                      "]");
}

c10::ScalarType TorchType(ValueType type) {
  switch (type) {
    case ValueType::kFloat:
      break;
    case ValueType::kInt64:
      return c10::kLong;
    case ValueType::kInt32:
      return c10::kInt;
    case ValueType::kUint8:
      return c10::kByte;
  }
  return c10::kFloat;
}

absl::Status TorchError(const std::string& place, const std::exception& error) {
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  const std::string message = torch != nullptr ? torch->what_without_backtrace() : error.what();
  const std::string sentence = SentenceOf(message);
  if (sentence != message) LOG(INFO) << place << ": " << message;
  return absl::InvalidArgumentError(absl::StrCat(place, ": ", sentence));
}

Autocast::Autocast(c10::DeviceType device, c10::ScalarType precision)
    : device_(device), enabled_(precision != c10::kFloat) {
  if (!enabled_) return;
  SetPrecision(device_, precision);  // may throw; autocast then stays disabled
  SetEnabled(device_, true);
}

Autocast::~Autocast() {
  if (!enabled_) return;
  SetEnabled(device_, false);
  at::autocast::clear_cache();
}

std::function<absl::Status()> RecordCompletion(c10::Device device) {
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
