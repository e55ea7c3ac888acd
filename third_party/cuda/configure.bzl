"""Finds the CUDA toolkit, version 12 or newer: in $CUDA_HOME if that variable is set, else in /usr/local/cuda, else in
the folder of the nvcc on the PATH. Without a toolkit, CUDA_TOOLKIT is empty and the targets for a GPU do not exist."""

_RUNTIME = """
cc_library(
    name = "runtime",
    hdrs = glob(["include/*.h", "include/*.hpp", "include/crt/**"]),
    srcs = ["lib/libcudart_static.a"],
    includes = ["include"],
    linkopts = ["-lpthread", "-ldl", "-lrt"],
    visibility = ["//visibility:public"],
)
"""

_TOOLKIT = """# Folder and version of the toolkit; both are empty if there is none.
CUDA_TOOLKIT = "{root}"
CUDA_VERSION = "{version}"
"""

def _candidates(ctx):
    chosen = ctx.os.environ.get("CUDA_HOME", "")
    if chosen:
        return [chosen]
    on_path = ctx.which("nvcc")
    return ["/usr/local/cuda"] + ([str(on_path.realpath.dirname.dirname)] if on_path else [])

def _version(ctx, root):
    """Returns the version that nvcc prints ("13.0"), or "" if nvcc does not exist or does not run."""
    if not ctx.path(root + "/bin/nvcc").exists:
        return ""
    result = ctx.execute([root + "/bin/nvcc", "--version"])
    if result.return_code != 0 or "release " not in result.stdout:
        return ""
    return result.stdout.split("release ")[1].split(",")[0]

def _library(ctx, root):
    for folder in ["lib64", "lib", "targets/x86_64-linux/lib"]:
        path = root + "/" + folder + "/libcudart_static.a"
        if ctx.path(path).exists:
            return path
    return ""

def _cuda_configure_impl(ctx):
    for root in _candidates(ctx):
        version = _version(ctx, root)
        library = _library(ctx, root)
        if version and int(version.split(".")[0]) >= 12 and library:
            ctx.symlink(root + "/include", "include")
            ctx.symlink(library, "lib/libcudart_static.a")
            ctx.file("BUILD", _RUNTIME)
            ctx.file("toolkit.bzl", _TOOLKIT.format(root = root, version = version))
            return
    ctx.file("BUILD", "")
    ctx.file("toolkit.bzl", _TOOLKIT.format(root = "", version = ""))

cuda_configure = repository_rule(
    implementation = _cuda_configure_impl,
    environ = ["CUDA_HOME", "PATH"],
    local = True,
)
