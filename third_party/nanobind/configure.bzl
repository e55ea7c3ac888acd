"""Finds Python's headers and the Python package nanobind, with the Python interpreter $THINWIRE_PYTHON if that variable is
set, else with Debian's. An extension module works with this version of Python only."""

_BUILD = """
cc_library(
    name = "python",
    hdrs = glob(["python/**/*.h"]),
    includes = ["python"],
)

cc_library(
    name = "nanobind",
    srcs = ["src/nb_combined.cpp"] + glob(["include/**/*.h"]),
    copts = ["-w", "-fno-strict-aliasing", "-DNDEBUG", "-DNB_COMPACT_ASSERTIONS", "-fvisibility=hidden"],
    includes = ["include"],
    textual_hdrs = glob(["src/*.h", "src/*.cpp", "robin_map/include/**/*.h"]),
    deps = [":python", ":robin_map"],
    visibility = ["//visibility:public"],
)

cc_library(
    name = "robin_map",
    hdrs = glob(["robin_map/include/**/*.h"]),
    includes = ["robin_map/include"],
)
"""

_PLACES = "import nanobind, sysconfig; print(sysconfig.get_path('include')); print(nanobind.source_dir())"

def _nanobind_configure_impl(ctx):
    python = ctx.os.environ.get("THINWIRE_PYTHON", "/usr/bin/python3")
    result = ctx.execute([python, "-c", _PLACES])
    if result.return_code != 0:
        fail("%s has no module nanobind (deploy/install_packages.sh installs it): %s" % (python, result.stderr))
    include, source = result.stdout.strip().split("\n")
    if not ctx.path(include + "/Python.h").exists:
        fail("%s/Python.h: not found (deploy/install_packages.sh installs python3-dev)" % include)
    package = str(ctx.path(source).dirname)
    ctx.symlink(include, "python")
    ctx.symlink(package + "/include", "include")
    ctx.symlink(package + "/src", "src")
    ctx.symlink(package + "/ext/robin_map", "robin_map")
    ctx.file("BUILD", _BUILD)

nanobind_configure = repository_rule(
    implementation = _nanobind_configure_impl,
    environ = ["THINWIRE_PYTHON"],
    local = True,
)
