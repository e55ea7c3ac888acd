#include "admin/traffic.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "admin/html.h"

namespace thinwire {
namespace {

std::string BytesText(double bytes) { return html::BytesText(static_cast<uint64_t>(bytes)); }

// Returns AMOUNT with at least two significant digits.
std::string MoneyText(double amount) {
  return amount < 0.1 ? absl::StrFormat("%.2g", amount) : absl::StrFormat("%.2f", amount);
}

}  // namespace

std::optional<double> Traffic::bill() const {
  if (price_per_gb == 0) return std::nullopt;
  const uint64_t billed_bytes = whole_run ? sent_bytes + received_bytes : sent_bytes;
  return static_cast<double>(billed_bytes) / 1e9 * price_per_gb;
}

double Traffic::PerHour(double quantity) const {
  return time > absl::ZeroDuration() ? quantity / absl::ToDoubleHours(time) : 0;
}

Traffic TrafficOf(const WorkerCounters& counters, absl::Duration time, double price_per_gb,
                  bool whole_run) {
  return {.sent_bytes = counters.sent_bytes(),
          .received_bytes = counters.received_bytes(),
          .time = time,
          .price_per_gb = price_per_gb,
          .whole_run = whole_run};
}

Traffic TrafficOf(const StatusReply& reply, absl::Duration time, double price_per_gb) {
  return {.sent_bytes = reply.stream_sent_bytes(),
          .received_bytes = reply.stream_received_bytes(),
          .time = time,
          .price_per_gb = price_per_gb};
}

std::vector<std::pair<std::string, std::string>> TrafficFacts(const Traffic& traffic) {
  std::vector<std::pair<std::string, std::string>> facts = {
      {"traffic per hour", absl::StrCat(BytesText(traffic.sent_per_hour()), " up, ",
                                        BytesText(traffic.received_per_hour()), " down")}};
  if (const std::optional<double> bill = traffic.bill()) {
    facts.emplace_back("bill",
                       absl::StrCat(MoneyText(*bill), " at ", traffic.price_per_gb, " per GB, ",
                                    MoneyText(traffic.PerHour(*bill)), " per hour"));
  }
  return facts;
}

nlohmann::ordered_json TrafficJson(const Traffic& traffic) {
  nlohmann::ordered_json json = {{"sent_bytes", traffic.sent_bytes},
                                 {"received_bytes", traffic.received_bytes},
                                 {"sent_bytes_per_hour", traffic.sent_per_hour()},
                                 {"received_bytes_per_hour", traffic.received_per_hour()},
                                 {"price_per_gb", nullptr},
                                 {"bill", nullptr},
                                 {"bill_per_hour", nullptr}};
  if (const std::optional<double> bill = traffic.bill()) {
    json["price_per_gb"] = traffic.price_per_gb;
    json["bill"] = *bill;
    json["bill_per_hour"] = traffic.PerHour(*bill);
  }
  return json;
}

void AddTrafficMetrics(const Traffic& traffic, MetricList& metrics) {
  metrics.Gauge("sent_bytes_per_hour", "Bytes sent on data streams per hour, since the start.",
                traffic.sent_per_hour());
  metrics.Gauge("received_bytes_per_hour",
                "Bytes received on data streams per hour, since the start.",
                traffic.received_per_hour());
  if (const std::optional<double> bill = traffic.bill()) {
    metrics.Gauge("bill", "Price of the sent bytes at --price_per_gb; of a run, of all bytes.",
                  *bill);
  }
}

}  // namespace thinwire
