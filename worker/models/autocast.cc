#include "worker/models/autocast.h"

#include <ATen/autocast_mode.h>
#include <torch/version.h>

namespace thinwire {
namespace {

// From 2.4 on one function takes the device, and those that name it are deprecated.
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)

void SetPrecision(at::DeviceType device, at::ScalarType precision) {
  at::autocast::set_autocast_dtype(device, precision);
}

void SetEnabled(at::DeviceType device, bool enabled) {
  at::autocast::set_autocast_enabled(device, enabled);
}

#else

void SetPrecision(at::DeviceType device, at::ScalarType precision) {
  if (device == at::kCPU) {
    at::autocast::set_autocast_cpu_dtype(precision);
  } else {
    at::autocast::set_autocast_gpu_dtype(precision);
  }
}

void SetEnabled(at::DeviceType device, bool enabled) {
  if (device == at::kCPU) {
    at::autocast::set_cpu_enabled(enabled);
  } else {
    at::autocast::set_enabled(enabled);
  }
}

#endif

}  // namespace

Autocast::Autocast(at::DeviceType device, at::ScalarType precision)
    : device_(device), enabled_(precision != at::kFloat) {
  if (!enabled_) return;
  SetPrecision(device_, precision);  // may throw, and then nothing is enabled
  SetEnabled(device_, true);
}

Autocast::~Autocast() {
  if (!enabled_) return;
  SetEnabled(device_, false);
  at::autocast::clear_cache();
}

}  // namespace thinwire
