// ExchangeParts: references to the objects that all classes of client/exchange use.
#ifndef THINWIRE_CLIENT_EXCHANGE_EXCHANGE_PARTS_H_
#define THINWIRE_CLIENT_EXCHANGE_EXCHANGE_PARTS_H_

#include <memory>

#include "client/encode/codec_tuner.h"
#include "client/encode/push_encoder.h"
#include "client/encode/wire_meter.h"
#include "client/exchange/deal_book.h"
#include "client/exchange/job_news.h"
#include "client/exchange/status_report.h"
#include "client/exchange/step_listener.h"
#include "client/exchange/worker_news.h"
#include "client/options/client_options.h"
#include "client/replica/replica.h"
#include "client/transport/transport.h"
#include "common/model/partition.h"
#include "common/time/executor.h"

namespace thinwire::client {

// All objects that an ExchangeParts refers to must outlive the Exchange.
struct ExchangeParts {
  const ClientOptions& options;
  const Partition& partition;
  Transport& transport;
  std::shared_ptr<Executor> loop;  // shared with pending calls of the transport
  Replica& replica;
  PushEncoder& encoder;
  CodecTuner* tuner;  // null unless the client chooses codecs at run time
  WireMeter& meter;   // of TUNER, if there is one
  StepListener& listener;
  StatusReport& report;
  WorkerNews& worker_news;
  JobNews& job_news;
  DealBook& deals;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_EXCHANGE_EXCHANGE_PARTS_H_
