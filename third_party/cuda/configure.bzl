"""Finds the CUDA toolkit, 12 or newer: in $CUDA_HOME if that is set, else in /usr/local/cuda, else where nvcc on the
PATH is. Where there is none, CUDA_TOOLKIT is empty and everything but the GPU's own targets is built."""

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

_TOOLKIT = """# Where the toolkit is, empty if there is none, and its version.
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
    """What nvcc says ("13.0"), empty if it is not there or does not run."""
    if not ctx.path(root + "/bin/nvcc").exists:
        return ""
    said = ctx.execute([root + "/bin/nvcc", "--version"])
    if said.return_code != 0 or "release " not in said.stdout:
        return ""
    return said.stdout.split("release ")[1].split(",")[0]

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
