#include "client/encode/wire_meter.h"

#include <algorithm>

namespace thinwire::client {

void WireMeter::Sent(size_t bytes, absl::Time now) {
  if (bytes == 0) return;
  if (under_way_ == 0) busy_since_ = now;
  under_way_ += bytes;
}

void WireMeter::Judged(size_t bytes, absl::Time now) {
  judged_ += bytes;
  // A verdict may belong to a push that was sent over a lost stream. Lost() has already subtracted
  // the bytes of such a push from under_way_, so they must not be subtracted again.
  const size_t known = std::min(bytes, under_way_);
  if (known == 0) return;
  under_way_ -= known;
  if (under_way_ == 0) busy_ += now - busy_since_;
}

void WireMeter::Lost() {
  under_way_ = 0;
  lost_ = true;
}

std::optional<double> WireMeter::EndStep() {
  const bool sampled = !lost_ && judged_ >= kLeastBytes && busy_ > absl::ZeroDuration();
  if (sampled) {
    const double sample = static_cast<double>(judged_) / absl::ToDoubleSeconds(busy_);
    const bool at_least = 2 * encoding_ > busy_;
    if (!goodput_.has_value()) {
      goodput_ = sample;
    } else if (!at_least) {
      goodput_ = (*goodput_ + sample) / 2;
    } else {
      goodput_ = std::max(*goodput_, sample);
    }
  }
  judged_ = 0;
  busy_ = absl::ZeroDuration();
  encoding_ = absl::ZeroDuration();
  // The busy time of a step whose pushes overlap with those of another one is not known.
  lost_ = under_way_ > 0;
  return goodput_;
}

}  // namespace thinwire::client
