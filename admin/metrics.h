// MetricList collects the metrics of a process at the time of a scrape and prints them in the text
// format of Prometheus. The values come from counters that exist anyway, so a metric costs nothing
// between two scrapes.
//
//   MetricList metrics;
//   metrics.Counter("server_pushes_total", "Pushes by verdict.", 12, {{"verdict", "accept"}});
//   metrics.Text()    thinwire_server_pushes_total{verdict="accept"} 12
#ifndef THINWIRE_ADMIN_METRICS_H_
#define THINWIRE_ADMIN_METRICS_H_

#include <prometheus/metric_family.h>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/tls/credentials_watch.h"
#include "proto/worker_event.pb.h"

namespace thinwire {

// Not thread-safe.
class MetricList {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  // Every value has the labels ALL too, after its own.
  explicit MetricList(Labels all = {}) : all_(std::move(all)) {}
  // Makes the list of a process with the labels job_name and role, and adds the metrics that every
  // process has. ROLE: "server", "worker" or "train". CREDENTIALS: null if it has none.
  static MetricList OfProcess(const std::string& job, const std::string& role,
                              const CredentialsLog* credentials);

  // Add a value to the metric thinwire_NAME. All values of a metric have the same type and the same
  // HELP.
  void Counter(const std::string& name, const std::string& help, double value,
               const Labels& labels = {});
  void Gauge(const std::string& name, const std::string& help, double value,
             const Labels& labels = {});
  // COUNTS maps a value to the number of times that it was observed. BOUNDS are the upper bounds of
  // the buckets, ascending.
  void Histogram(const std::string& name, const std::string& help,
                 const std::map<uint64_t, uint64_t>& counts, std::span<const double> bounds);

  // Adds build_info, whose value is always 1, for PROGRAM: "server", "worker" or "train". Its
  // labels name the build.
  void BuildInfo(const std::string& program);
  // Adds the resident memory of this process.
  void ResidentMemory();
  // Adds the end of the certificate in the folder of CREDENTIALS, except while the file cannot be
  // read, and the time at which the process read its files. Nothing if the folder is "".
  void Certificate(const CredentialsLog& credentials);
  // Adds one metric for each counter: push_bytes_raw becomes worker_push_raw_bytes_total, and
  // encode_micros becomes worker_encode_seconds_total.
  void AddWorkerCounters(const WorkerCounters& counters);

  std::string Text() const;

 private:
  prometheus::ClientMetric& Add(const std::string& name, const std::string& help,
                                prometheus::MetricType type, const Labels& labels);

  const Labels all_;
  std::vector<prometheus::MetricFamily> families_;
};

// The media type of MetricList::Text().
inline constexpr char kMetricsType[] = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace thinwire

#endif  // THINWIRE_ADMIN_METRICS_H_
