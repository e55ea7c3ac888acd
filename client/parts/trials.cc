#include "client/parts/trials.h"

#include "client/encode/push_encoder.h"
#include "client/exchange/status_report.h"

namespace thinwire::client {

std::optional<Step> Trials::first_step() const { return thread_.core->joined_run().trial; }

void Trials::StartErrorMeasurement() {
  thread_.loop->Run([this] { thread_.core->parts().encoder.MeasureErrors(true); });
}

std::optional<double> Trials::StopErrorMeasurement() {
  std::optional<double> ratio;
  thread_.loop->Run([&] {
    PushEncoder& encoder = thread_.core->parts().encoder;
    if (encoder.measures_errors()) ratio = encoder.error().ratio();
    encoder.MeasureErrors(false);
  });
  return ratio;
}

void Trials::Report(const PrecisionTest& test) {
  thread_.core->parts().worker_news.AddTest(test);
  thread_.loop->Post([this] { thread_.core->HeartbeatToLead(); });
}

}  // namespace thinwire::client
