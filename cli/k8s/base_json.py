"""Prints a C++ header with the objects of YAML files as JSON.

    base_json.py NAME=FILE...

The header has the string kBaseJson: an object with the list of objects of each file.
"""

import json
import sys

import yaml


def main():
    files = {}
    for argument in sys.argv[1:]:
        name, path = argument.split("=")
        with open(path, encoding="utf-8") as file:
            files[name] = list(yaml.safe_load_all(file))
    text = json.dumps(files, indent=1)
    print(f'namespace thinwire {{\ninline constexpr char kBaseJson[] = R"json({text})json";\n}}  // namespace thinwire')


if __name__ == "__main__":
    main()
