#include "cli/k8s/yaml_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace thinwire {
namespace {

using Json = nlohmann::ordered_json;

TEST(YamlTextTest, ObjectsAndArraysAreIndented) {
  EXPECT_EQ(YamlText(Json::parse(R"({
    "kind": "Pod",
    "spec": {"volumes": [{"name": "a", "size": 1}, {"empty": {}}], "list": [], "nested": [[1, 2]]}
  })")),
            "kind: Pod\n"
            "spec:\n"
            "  volumes:\n"
            "    - name: a\n"
            "      size: 1\n"
            "    - empty: {}\n"
            "  list: []\n"
            "  nested:\n"
            "    - - 1\n"
            "      - 2\n");
}

TEST(YamlTextTest, StringsThatYamlWouldReadAsOtherTypesAreQuoted) {
  for (const char* text :
       {"",   "1",    "1e3",  "true", "No",   "y",  "null", "~",  "a: b", "a #b", "- a",
        "*a", "0440", ".inf", "2Gi",  "a\nb", "a:", "\"",   "{}", " a",   "é"}) {
    EXPECT_EQ(YamlText({{"key", text}}), "key: " + Json(text).dump() + "\n");
  }
  for (const char* text : {"a", "/healthz", "app.kubernetes.io/name", "None", "a=b"}) {
    EXPECT_EQ(YamlText({{"key", text}}), "key: " + std::string(text) + "\n");
  }
}

TEST(YamlTextTest, KeysAreQuotedLikeStrings) {
  EXPECT_EQ(YamlText({{"n", true}, {"0", 0.5}}), "\"n\": true\n\"0\": 0.5\n");
}

}  // namespace
}  // namespace thinwire
