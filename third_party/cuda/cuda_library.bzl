"""cuda_library compiles a CUDA source for a GPU and for the emulation on the host.

    name            library for a GPU: the source compiled by nvcc, or by g++ if it has no kernel. This target exists
                    only if the CUDA toolkit is installed.
    name_emulated   library for tests without a GPU: the same source compiled by g++ with kernels/cuda/emulation
    name_headers    the headers alone, which need no toolkit. Code that is compiled once and linked with either of the
                    two libraries depends on this target.
"""

load("@cuda//:toolkit.bzl", "CUDA_TOOLKIT", "CUDA_VERSION")

# The flags of nvcc. To match the results of the CPU, products and sums are rounded separately (no fused multiply-add)
# and denormals are kept. The libraries contain machine code for Ampere and Hopper GPUs, and PTX, which the driver
# compiles for newer GPUs.
_FLAGS = [
    "-std=c++20",
    "-O3",
    "-fmad=false",
    "--ftz=false",
    "--prec-div=true",
    "--expt-relaxed-constexpr",
    "-gencode=arch=compute_80,code=sm_80",
    "-gencode=arch=compute_90,code=[sm_90,compute_90]",
    "-Werror=all-warnings",
    "-Xcompiler=-Wall,-fPIC,-ffp-contract=off",
]

# The architectures of _FLAGS, "sm_80 sm_90 compute_90", or "none" if the build has no kernels for a GPU.
CUDA_ARCHITECTURES = " ".join([
    flag.rpartition("code=")[2].strip("[]").replace(",", " ")
    for flag in _FLAGS
    if flag.startswith("-gencode")
]) if CUDA_TOOLKIT else "none"

# Compiles a .cu file, and fails if the device code contains a trap instruction. nvcc may silently replace a call of a
# constexpr function that cannot run on the device by a trap.
_COMMAND = """
keep=$(mktemp -d) && trap 'rm -rf "$keep"' EXIT
{nvcc} {flags} --keep --keep-dir "$keep" -I. -lib -o {out} {src} || exit 1
if grep -n 'trap;' "$keep"/*.ptx; then echo '{src}: device code contains a trap (expected none)' >&2; exit 1; fi
"""

def _nvcc_archive_impl(ctx):
    out = ctx.actions.declare_file("lib%s.a" % ctx.label.name)
    headers = [dep[CcInfo].compilation_context.headers for dep in ctx.attr.deps]
    ctx.actions.run_shell(
        inputs = depset([ctx.file.src], transitive = headers),
        outputs = [out],
        mnemonic = "Nvcc",
        progress_message = "Compiling %s by nvcc %s" % (ctx.file.src.short_path, CUDA_VERSION),
        # Makes Bazel compile again if the CUDA version changes, because another toolkit in the same folder generates
        # other code.
        env = {"CUDA_VERSION": CUDA_VERSION},
        use_default_shell_env = True,
        command = _COMMAND.format(
            nvcc = CUDA_TOOLKIT + "/bin/nvcc",
            flags = " ".join(["'%s'" % flag for flag in _FLAGS]),
            out = out.path,
            src = ctx.file.src.path,
        ),
    )
    return [DefaultInfo(files = depset([out]))]

_nvcc_archive = rule(
    implementation = _nvcc_archive_impl,
    attrs = {
        "src": attr.label(allow_single_file = [".cu"]),
        "deps": attr.label_list(providers = [CcInfo]),
    },
)

def cuda_library(name, hdrs, src = None, deps = [], host_deps = [], testonly = False):
    """Defines the three targets. deps are cuda_library targets, and host_deps are all other targets.

    src is a .cu or .cc file, or None for a library of headers only.
    """
    native.cc_library(
        name = name + "_headers",
        testonly = testonly,
        hdrs = hdrs,
        deps = [dep + "_headers" for dep in deps] + host_deps,
    )
    _emulated(name, src, deps)
    if CUDA_TOOLKIT:
        native.cc_library(
            name = name,
            testonly = testonly,
            srcs = _compiled(name, src),
            linkstatic = True,
            deps = [":" + name + "_headers", "//kernels/cuda/runtime:runtime", "@cuda//:runtime"] + deps,
        )

def _compiled(name, src):
    if src == None or src.endswith(".cc"):
        return [src] if src else []
    _nvcc_archive(
        name = name + "_archive",
        src = src,
        deps = [":" + name + "_headers", "//kernels/cuda/runtime:runtime"],
    )
    return [":" + name + "_archive"]

def _emulated(name, src, deps):
    srcs = []
    if src:
        wrapper = name + "_emulated.cc"
        native.genrule(
            name = name + "_wrapper",
            outs = [wrapper],
            cmd = "echo '#include \"%s/%s\"' > $@" % (native.package_name(), src),
        )
        srcs = [wrapper]
    native.cc_library(
        name = name + "_emulated",
        testonly = True,
        srcs = srcs,
        linkstatic = True,
        textual_hdrs = [src] if src else [],
        copts = ["-Wno-unknown-pragmas"],  # g++ does not know nvcc's unroll pragmas
        local_defines = ["THINWIRE_CUDA_EMULATION"],
        deps = [":" + name + "_headers", "//kernels/cuda/runtime:runtime", "//kernels/cuda/emulation:runtime"] +
               [dep + "_emulated" for dep in deps],
    )

def cuda_test(name, srcs, deps, host_deps = [], size = "small"):
    """Runs the test cases of srcs on the emulation. cuda_gpu_test links the same object files."""
    native.cc_library(
        name = name + "_cases",
        testonly = True,
        srcs = srcs,
        linkstatic = True,
        deps = [dep + "_headers" for dep in deps] + host_deps + ["//third_party/system:gtest"],
        alwayslink = True,
    )
    native.cc_test(
        name = name,
        size = size,
        linkstatic = True,
        deps = [":" + name + "_cases", "//third_party/system:gtest_main"] + [dep + "_emulated" for dep in deps],
    )

def cuda_gpu_test(name, tests, deps):
    """Runs the test cases of several cuda_test targets on a GPU, in one program."""
    if CUDA_TOOLKIT:
        native.cc_test(
            name = name,
            size = "large",
            linkstatic = True,
            deps = [test + "_cases" for test in tests] + deps + ["//third_party/system:gtest_main"],
        )

def cuda_binary(name, srcs, deps, host_deps = []):
    """Defines a program that uses a GPU and also starts on a machine without a GPU.

    name_emulated is the same program on the emulation, to test the host code.
    """
    native.cc_library(
        name = name + "_main",
        testonly = True,
        srcs = srcs,
        linkstatic = True,
        deps = [dep + "_headers" for dep in deps] + host_deps,
    )
    if CUDA_TOOLKIT:
        native.cc_binary(
            name = name,
            testonly = True,
            # Links only the shared libraries that the program calls, because the machine with the GPU may lack the
            # other libraries.
            linkopts = ["-Wl,--as-needed"],
            deps = [":" + name + "_main"] + deps,
        )
    native.cc_binary(
        name = name + "_emulated",
        testonly = True,
        deps = [":" + name + "_main"] + [dep + "_emulated" for dep in deps],
    )
