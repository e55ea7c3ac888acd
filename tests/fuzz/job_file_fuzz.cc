// A libFuzzer target for the job file: ParseJobText (config/job_text.h) and CheckJob
// (config/job.h). Every text is a job or an error, and a printed job is the same job again.
#include <google/protobuf/text_format.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "config/job.h"
#include "config/job_text.h"
#include "config/recipes.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* input, size_t size) {
  using namespace thinwire;
  const std::string_view text(reinterpret_cast<const char*>(input), size);
  auto parsed = ParseJobText(text, "job.textproto");
  if (!parsed.ok()) return 0;
  ExpandRecipe(parsed->config, parsed->places);
  const auto spec = CheckJob(parsed->config, parsed->places);
  if (!spec.ok()) return 0;
  WarningsOf(parsed->config, *spec, parsed->places);
  std::string printed;
  google::protobuf::TextFormat::PrintToString(parsed->config, &printed);
  const auto again = ParseJobText(printed, "printed");
  if (!again.ok()) std::abort();
  const auto same = CheckJob(again->config, again->places);
  if (!same.ok() || !(*same == *spec)) std::abort();
  return 0;
}
