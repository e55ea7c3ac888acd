#include "admin/metrics.h"

#include <prometheus/text_serializer.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/tls/certificate.h"
#include "common/version/version.h"
#include "proto/counters.h"

namespace thinwire {

prometheus::ClientMetric& MetricList::Add(const std::string& name, const std::string& help,
                                          prometheus::MetricType type, const Labels& labels) {
  const std::string full_name = absl::StrCat("thinwire_", name);
  auto family = std::ranges::find(families_, full_name, &prometheus::MetricFamily::name);
  if (family == families_.end()) {
    families_.push_back({.name = full_name, .help = std::string(help), .type = type, .metric = {}});
    family = std::prev(families_.end());
  }
  prometheus::ClientMetric& metric = family->metric.emplace_back();
  for (const auto& [label, value] : labels) metric.label.push_back({label, value});
  for (const auto& [label, value] : all_) metric.label.push_back({label, value});
  return metric;
}

MetricList MetricList::OfProcess(const std::string& job, const std::string& role,
                                 const CredentialsLog* credentials) {
  MetricList metrics({{"job_name", job}, {"role", role}});
  metrics.BuildInfo(role);
  metrics.ResidentMemory();
  if (credentials != nullptr) metrics.Certificate(*credentials);
  return metrics;
}

void MetricList::Counter(const std::string& name, const std::string& help, double value,
                         const Labels& labels) {
  Add(name, help, prometheus::MetricType::Counter, labels).counter.value = value;
}

void MetricList::Gauge(const std::string& name, const std::string& help, double value,
                       const Labels& labels) {
  Add(name, help, prometheus::MetricType::Gauge, labels).gauge.value = value;
}

void MetricList::Histogram(const std::string& name, const std::string& help,
                           const std::map<uint64_t, uint64_t>& counts,
                           std::span<const double> bounds) {
  prometheus::ClientMetric::Histogram& histogram =
      Add(name, help, prometheus::MetricType::Histogram, {}).histogram;
  auto next = counts.begin();
  for (const double bound : bounds) {
    for (; next != counts.end() && static_cast<double>(next->first) <= bound; ++next) {
      histogram.sample_count += next->second;
    }
    histogram.bucket.push_back({.cumulative_count = histogram.sample_count, .upper_bound = bound});
  }
  for (; next != counts.end(); ++next) histogram.sample_count += next->second;
  for (const auto& [value, count] : counts) {
    histogram.sample_sum += static_cast<double>(value) * static_cast<double>(count);
  }
}

void MetricList::BuildInfo(const std::string& program) {
  Gauge("build_info", "The program, its version and the compiler that built it. Always 1.", 1,
        {{"program", program},
         {"version", std::string(BuildVersion())},
         {"revision", std::string(BuildRevision())},
         {"compiler", __VERSION__}});
}

void MetricList::ResidentMemory() {
  // The second number is the resident size in pages; the file is absent on other systems than
  // Linux.
  std::ifstream file("/proc/self/statm");
  uint64_t virtual_page_count = 0;
  uint64_t resident_page_count = 0;
  if (!(file >> virtual_page_count >> resident_page_count)) return;
  Gauge("resident_memory_bytes", "Memory of the process.",
        static_cast<double>(resident_page_count) * static_cast<double>(getpagesize()));
}

void MetricList::Certificate(const CredentialsLog& credentials) {
  if (credentials.dir().empty()) return;
  Gauge("certificate_read_timestamp_seconds",
        "When this process read the certificate in use, in seconds since the Unix epoch.",
        static_cast<double>(absl::ToUnixSeconds(credentials.read_time())));
  const auto chain = ReadCertificates(absl::StrCat(credentials.dir(), "/", kCertificateFile));
  if (!chain.ok()) return;  // it is being replaced
  Gauge("certificate_expiry_timestamp_seconds",
        "End of the certificate of this process, in seconds since the Unix epoch.",
        static_cast<double>(absl::ToUnixSeconds(chain->front().not_after)));
}

void MetricList::AddWorkerCounters(const WorkerCounters& counters) {
  ForEachCounter(counters, [this](const std::string& name, uint64_t value) {
    std::string metric = name;
    auto amount = static_cast<double>(value);
    if (absl::StrContains(name, "_bytes_")) {
      metric = absl::StrCat(absl::StrReplaceAll(name, {{"_bytes_", "_"}}), "_bytes");
    } else if (absl::EndsWith(name, "_micros")) {
      metric = absl::StrCat(absl::StripSuffix(name, "_micros"), "_seconds");
      amount *= 1e-6;
    }
    Counter(absl::StrCat("worker_", metric, "_total"),
            absl::StrCat("WorkerCounters.", name, " (proto/worker_event.proto)."), amount);
  });
}

std::string MetricList::Text() const { return prometheus::TextSerializer().Serialize(families_); }

}  // namespace thinwire
