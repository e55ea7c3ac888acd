"""Checks Kubernetes objects against JSON schemas in which every field that a schema does not name is an error."""

import importlib.util
import json
import pathlib

import jsonschema
import yaml

VERSION = "v1.37.0"
SITE = "https://kubernetes.io"  # the schemas' own name of their place; nothing is read from it


class Schemas:
    """The schemas of the core objects come from the Python package kubernetes-validate, of which only these files are read. Those of
    the custom resources are in custom_schemas.yaml."""

    def __init__(self, custom_schemas):
        package = importlib.util.find_spec("kubernetes_validate")
        assert package is not None, "kubernetes-validate is not installed (deploy/install_packages.sh installs it)"
        self._folder = (
            pathlib.Path(package.submodule_search_locations[0]) / "kubernetes-json-schema" / f"{VERSION}-local-strict"
        )
        self._custom = yaml.safe_load(pathlib.Path(custom_schemas).read_text(encoding="utf-8"))
        definitions = self._read("_definitions.json")
        self._resolver = jsonschema.RefResolver(SITE, {}, store={SITE + "/api/_definitions.json": definitions})

    def _read(self, name):
        return json.loads((self._folder / name).read_text(encoding="utf-8"))

    def problems(self, item):
        """Returns one line for each problem of an object."""
        schema = self._custom.get(item["kind"])
        if schema is None:
            group, _, version = item["apiVersion"].rpartition("/")
            parts = [item["kind"].lower(), group.split(".")[0], version]
            schema = self._read("-".join(part for part in parts if part) + ".json")
        errors = jsonschema.Draft202012Validator(schema, resolver=self._resolver).iter_errors(item)
        return [f"{error.json_path}: {error.message}" for error in errors]
