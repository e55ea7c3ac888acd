"""Finds LibTorch: $THINWIRE_TORCH (a folder with include/ and lib/, such as the `torch` Python package), or Debian's."""

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

# A program that travels is told where LibTorch is when it starts; what LibTorch itself needs is there, too.
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
            fail("THINWIRE_TORCH=%s: want a folder with include/torch and lib, found no include/torch" % root)
        # Only LibTorch's own folders: the Python package's include/ also holds an old protobuf.
        for folder in ["ATen", "c10", "torch", "caffe2"]:
            if ctx.path(root + "/include/" + folder).exists:
                ctx.symlink(root + "/include/" + folder, "include/" + folder)
        includes = ["include", "include/torch/csrc/api/include"]
        headers = "glob([\"include/**/*.h\", \"include/**/*.hpp\"])"
        linkopts = ["-L%s/lib" % root]
        if ctx.path(root + "/lib/libtorch_cuda.so").exists:
            linkopts += ["-Wl,--no-as-needed", "-ltorch_cuda", "-lc10_cuda", "-Wl,--as-needed"]
    else:
        # The headers are in /usr/include; only the folder of the C++ API must be named.
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
