"""Finds LibTorch: in $THINWIRE_TORCH (a folder with include/ and lib/, such as the `torch` Python package) if that
variable is set, else in Debian's package."""

_TARGET = """
cc_library(
    name = "torch",
    copts = [],
    includes = [{includes}],
    hdrs = {headers},
    linkopts = [{linkopts}]{search},
    visibility = ["//visibility:public"],
)
"""

# The programs of a bundle (deploy/bundle.sh) find LibTorch only when they start, in a folder that also contains the
# libraries that LibTorch needs. The link step therefore allows undefined symbols in LibTorch.
_SEARCH = """ + select({{
        "@thinwire//third_party/system:static": ["-Wl,--allow-shlib-undefined"],
        "//conditions:default": ["-Wl,-rpath,{root}/lib"],
    }})"""

def _quoted(words):
    return ", ".join(["\"%s\"" % w for w in words])

def _torch_configure_impl(ctx):
    root = ctx.os.environ.get("THINWIRE_TORCH", "")
    if root:
        if not ctx.path(root + "/include/torch").exists:
            fail("THINWIRE_TORCH: no include/torch (expected a folder with include/torch and lib, got %s)" % root)
        # Links only LibTorch's own folders of headers: the folder include/ of the Python package also contains an old
        # version of protobuf.
        for folder in ["ATen", "c10", "torch", "caffe2"]:
            if ctx.path(root + "/include/" + folder).exists:
                ctx.symlink(root + "/include/" + folder, "include/" + folder)
        includes = ["include", "include/torch/csrc/api/include"]
        headers = "glob([\"include/**/*.h\", \"include/**/*.hpp\"])"
        linkopts = ["-L%s/lib" % root]
        if ctx.path(root + "/lib/libtorch_cuda.so").exists:
            linkopts += ["-Wl,--no-as-needed", "-ltorch_cuda", "-lc10_cuda", "-Wl,--as-needed"]
    else:
        # Debian's LibTorch headers are in /usr/include. Only the headers of the C++ API are in a deeper folder.
        ctx.symlink("/usr/include/torch/csrc/api/include", "api")
        includes = ["api"]
        headers = "glob([\"api/**/*.h\"])"
        linkopts = []
    linkopts += ["-ltorch", "-ltorch_cpu", "-lc10"]
    ctx.file("BUILD", _TARGET.format(
        includes = _quoted(includes),
        headers = headers,
        linkopts = _quoted(linkopts),
        search = _SEARCH.format(root = root) if root else "",
    ))

torch_configure = repository_rule(
    implementation = _torch_configure_impl,
    environ = ["THINWIRE_TORCH"],
    local = True,
)
