#include "cli/k8s/manifests.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/k8s/base_json.h"
#include "cli/k8s/yaml_text.h"
#include "common/base/status_macros.h"
#include "common/files/crc32c.h"
#include "common/tls/identity.h"

namespace thinwire {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kBaseName[] = "train";
constexpr char kBaseImage[] = "localhost/thinwire:dev";
constexpr char kHeader[] =
    "# Written by thinwire k8s. The sources with their comments are in deploy/k8s of thinwire.\n";
// The hostname NAME-worker-HASH-9999 has at most 63 characters.
constexpr size_t kMostNameLength = 40;
constexpr size_t kMostLabelLength = 63;

// Returns whether TEXT is a label of DNS.
bool IsDnsLabel(std::string_view text) {
  if (text.empty() || text.size() > kMostLabelLength) return false;
  if (text.front() == '-' || text.back() == '-') return false;
  for (const char c : text) {
    if (!absl::ascii_islower(c) && !absl::ascii_isdigit(c) && c != '-') return false;
  }
  return true;
}

// Returns whether TEXT is DNS labels with dots between them, and may be the value of a label.
bool IsQueueName(const std::string& text) {
  const std::vector<std::string> labels = absl::StrSplit(text, '.');
  return text.size() <= kMostLabelLength && std::ranges::all_of(labels, IsDnsLabel);
}

// Makes the objects of deploy/k8s those of another job. Not thread-safe.
class Renderer {
 public:
  Renderer(const JobSpec& job, const std::string& job_text, const ManifestOptions& options)
      : job_(job), job_text_(job_text), options_(options), base_(Json::parse(kBaseJson)) {
    Rename(base_);
    // A whole number of seconds that is not below the drain.
    drain_seconds_ = static_cast<int64_t>(std::ceil(absl::ToDoubleSeconds(job.drain)));
  }

  std::map<std::string, std::string> Files() {
    std::map<std::string, std::string> files = {{"job.textproto", job_text_}};
    std::vector<std::string> resources = {"servers.yaml", "workers.yaml", "network.yaml"};
    files["servers.yaml"] = Text(Servers());
    files["workers.yaml"] = Text(Workers());
    files["network.yaml"] = Text(base_["network"]);
    if (options_.cert_manager) {
      resources.push_back("certificates.yaml");
      files["certificates.yaml"] = Text(Certificates());
    }
    files["kustomization.yaml"] = Text(Json::array({Kustomization(resources)}));
    files["setup/kustomization.yaml"] =
        KustomizationOf("data.yaml");  // the namespace exists already
    files["setup/data.yaml"] = Text(base_["data"]);
    files["state/kustomization.yaml"] = KustomizationOf("state.yaml");
    files["state/state.yaml"] = Text(State());
    return files;
  }

 private:
  // Replaces the job's name in each string of VALUE that is "train" or begins with "train-", and
  // the image. No other string of deploy/k8s contains the name, which a test checks.
  void Rename(Json& value) const {
    if (value.is_structured()) {
      for (Json& item : value) Rename(item);
    } else if (value.is_string()) {
      const std::string text = value.get<std::string>();
      if (text == kBaseName || text.starts_with(absl::StrCat(kBaseName, "-"))) {
        value = absl::StrCat(job_.name, text.substr(sizeof(kBaseName) - 1));
      } else if (text == kBaseImage && !options_.image.empty()) {
        value = options_.image;
      }
    }
  }

  static std::string Text(const Json& objects) {
    std::vector<std::string> texts;
    for (const Json& object : objects) texts.push_back(YamlText(object));
    return absl::StrCat(kHeader, absl::StrJoin(texts, "---\n"));
  }

  std::string ServerName(uint32_t server) const {
    return absl::StrCat(job_.name, "-server-", server);
  }

  std::string Addresses() const {
    std::vector<std::string> addresses;
    for (uint32_t s = 0; s < job_.server_count; ++s) {
      addresses.push_back(absl::StrCat(ServerName(s), "-0.", job_.name, "-servers:7000"));
    }
    return absl::StrJoin(addresses, ",");
  }

  // Gives a pod the certificate in SECRET, or the right to do without one.
  void AddCredentials(Json& pod, const std::string& secret) const {
    Json& container = pod["containers"][0];
    if (options_.insecure) {
      container["args"].push_back("--insecure");
      return;
    }
    // The volume of the workers also suits a server that mounts its own certificate only.
    const Json& source = base_["credentials"][0]["spec"]["template"]["spec"];
    Json volume = source["volumes"][0];
    volume["secret"]["secretName"] = secret;
    if (options_.cert_manager) {
      volume["secret"]["items"] = {{{"key", "ca.crt"}, {"path", "ca.pem"}},
                                   {{"key", "tls.crt"}, {"path", "cert.pem"}},
                                   {{"key", "tls.key"}, {"path", "key.pem"}}};
    }
    const Json& mount = source["containers"][0]["volumeMounts"][0];
    pod["volumes"].push_back(std::move(volume));
    container["volumeMounts"].push_back(mount);
    container["args"].push_back(
        absl::StrCat("--credentials=", mount["mountPath"].get<std::string>()));
  }

  Json Servers() const {
    Json objects = Json::array();
    for (const Json& object : base_["servers"]) {
      if (object["kind"] != "StatefulSet") {
        objects.push_back(object);
        continue;
      }
      for (uint32_t s = 0; s < job_.server_count; ++s) objects.push_back(Server(object, s));
    }
    return objects;
  }

  // Returns the StatefulSet of all servers in deploy/k8s. REQUIRES: there is one.
  const Json& ServerSet() const {
    const Json& servers = base_["servers"];
    return *std::ranges::find_if(
        servers, [](const Json& object) { return object["kind"] == "StatefulSet"; });
  }

  // Returns the StatefulSet of one server, made from that of all servers.
  Json Server(Json set, uint32_t server) const {
    const std::string number = absl::StrCat(server);
    set["metadata"]["name"] = ServerName(server);
    Json& spec = set["spec"];
    spec["replicas"] = 1;
    spec["selector"]["matchLabels"]["thinwire/server"] = number;
    spec["template"]["metadata"]["labels"]["thinwire/server"] = number;
    Json& pod = spec["template"]["spec"];
    Json& container = pod["containers"][0];
    for (Json& variable : container["env"]) {
      if (variable["name"] == "THINWIRE_SERVER") {
        variable = {{"name", "THINWIRE_SERVER"}, {"value", number}};
      }
    }
    container["lifecycle"]["preStop"]["sleep"]["seconds"] = drain_seconds_;
    pod["terminationGracePeriodSeconds"] = drain_seconds_ + 90;  // time for the last checkpoint
    if (options_.gpu_spot) {
      pod["affinity"] = base_["spot_servers"][0]["spec"]["template"]["spec"]["affinity"];
    }
    AddCredentials(pod, ServerName(server));
    return set;
  }

  Json Workers() const {
    Json job = base_["workers"][0];
    Json& spec = job["spec"];
    spec["completions"] = job_.rule.workers;
    spec["parallelism"] = job_.rule.workers;
    Json& pod = spec["template"]["spec"];
    pod["terminationGracePeriodSeconds"] = drain_seconds_ + 10;
    if (options_.gpu_spot) {
      const Json& spot = base_["spot_workers"][0]["spec"]["template"]["spec"];
      pod["affinity"] = spot["affinity"];
      pod["tolerations"] = spot["tolerations"];
      Json& container = pod["containers"][0];
      container["resources"] = spot["containers"][0]["resources"];
      if (options_.image.empty()) container["image"] = spot["containers"][0]["image"];
      container["args"].push_back("--device=cuda:0");
    }
    AddCredentials(pod, absl::StrCat(job_.name, "-worker"));
    if (!options_.queue.empty()) {
      job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = options_.queue;
    }
    // Kubernetes refuses to change the template of a Job. The name therefore follows from the
    // content of the template, and from that of the ConfigMap, whose name is in the template.
    const std::string content = absl::StrCat(job.dump(), job_text_, Addresses());
    const uint32_t hash = Crc32c(std::as_bytes(std::span(content)));
    job["metadata"]["name"] =
        absl::StrCat(job["metadata"]["name"].get<std::string>(), absl::StrFormat("-%08x", hash));
    return Json::array({job});
  }

  Json Certificates() const {
    Json objects = Json::array();
    for (const Json& object : base_["certificates"]) {
      const bool certificate = object["kind"] == "Certificate";
      if (certificate && object["metadata"]["name"] == ServerName(0)) {
        for (uint32_t s = 0; s < job_.server_count; ++s) {
          objects.push_back(Certificate(object, ServerName(s), {Role::kServer, job_.name, s}));
        }
      } else if (certificate && object["spec"].contains("dnsNames")) {
        objects.push_back(Certificate(object, absl::StrCat(job_.name, "-worker"),
                                      {Role::kWorker, job_.name, std::nullopt}));
      } else {
        objects.push_back(object);
      }
    }
    return objects;
  }

  static Json Certificate(Json certificate, const std::string& name, const Identity& identity) {
    certificate["metadata"]["name"] = name;
    certificate["spec"]["secretName"] = name;
    certificate["spec"]["dnsNames"] = Json::array({identity.DnsName()});
    return certificate;
  }

  // Returns the claims of all servers, which their StatefulSets would make otherwise, and a pod
  // that mounts them.
  Json State() const {
    const Json& claim = ServerSet()["spec"]["volumeClaimTemplates"][0];
    Json pod = base_["state"].back();
    Json& volumes = pod["spec"]["volumes"];
    Json& mounts = pod["spec"]["containers"][0]["volumeMounts"];
    // The volumes of deploy/k8s are one for files, and one for each of its servers.
    volumes.erase(volumes.begin() + 1, volumes.end());
    mounts.erase(mounts.begin() + 1, mounts.end());
    Json objects = Json::array();
    for (uint32_t s = 0; s < job_.server_count; ++s) {
      const std::string name =
          absl::StrCat(claim["metadata"]["name"].get<std::string>(), "-", ServerName(s), "-0");
      const std::string volume = absl::StrCat("server-", s);
      objects.push_back({{"apiVersion", "v1"},
                         {"kind", "PersistentVolumeClaim"},
                         {"metadata", {{"name", name}}},
                         {"spec", claim["spec"]}});
      volumes.push_back({{"name", volume}, {"persistentVolumeClaim", {{"claimName", name}}}});
      mounts.push_back({{"name", volume}, {"mountPath", absl::StrCat("/claims/", s)}});
    }
    objects.push_back(std::move(pod));
    return objects;
  }

  // Returns the text of a kustomization of one file, without the labels of the job.
  std::string KustomizationOf(const char* resource) const {
    Json object = base_["setup"][0];
    object["namespace"] = options_.kube_namespace;
    object["resources"] = Json::array({resource});
    return Text(Json::array({object}));
  }

  Json Kustomization(const std::vector<std::string>& resources) const {
    Json object = base_["kustomization"][0];
    object["namespace"] = options_.kube_namespace;
    object["resources"] = resources;
    Json& map = object["configMapGenerator"][0];
    map["literals"] = Json::array({absl::StrCat("addresses=", Addresses())});
    // A changed job file gets another ConfigMap, because Kubernetes refuses to change this one.
    map["options"].erase("disableNameSuffixHash");
    return object;
  }

  const JobSpec& job_;
  const std::string& job_text_;
  const ManifestOptions& options_;
  Json base_;
  int64_t drain_seconds_ = 0;
};

}  // namespace

absl::Status ManifestOptions::Validate() const {
  if (!IsDnsLabel(kube_namespace)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--namespace: not a DNS label (expected 1 to 63 of a-z, 0-9 and inner -, got \"",
        kube_namespace, "\")"));
  }
  if (!queue.empty() && !IsQueueName(queue)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--queue: not the name of a queue (expected 1 to 63 of a-z, 0-9, inner - and "
                     "inner ., got \"",
                     queue, "\")"));
  }
  for (const char c : image) {
    if (absl::ascii_isalnum(c) || std::string_view("./:@_-").find(c) != std::string_view::npos) {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "--image: not an image (expected one such as registry/thinwire:1, got \"", image, "\")"));
  }
  return absl::OkStatus();
}

absl::Status CheckNames(const JobSpec& job) {
  // A job's name is a DNS label (common/spec/job_spec.h). That of a Service begins with a letter.
  if (job.name.size() <= kMostNameLength && absl::ascii_islower(job.name.front())) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("not the name of a job in Kubernetes (expected at most ", kMostNameLength,
                   " characters, and a letter first, got \"", job.name, "\")"));
}

std::map<std::string, std::string> Manifests(const JobSpec& job, const std::string& job_text,
                                             const ManifestOptions& options) {
  return Renderer(job, job_text, options).Files();
}

}  // namespace thinwire
