"""precompiled_header compiles a header once for many sources."""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "ACTION_NAMES")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _precompiled_header(ctx):
    folder = ctx.label.name
    header = ctx.actions.declare_file("%s/%s" % (folder, ctx.file.header.basename))
    compiled = ctx.actions.declare_file("%s/%s.gch" % (folder, ctx.file.header.basename))
    ctx.actions.symlink(output = header, target_file = ctx.file.header)

    # GCC uses a precompiled header only for sources that are compiled with the same flags.
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    cpp = ctx.fragments.cpp
    flags = cc_common.get_memory_inefficient_command_line(
        feature_configuration = features,
        action_name = ACTION_NAMES.cpp_compile,
        variables = cc_common.create_compile_variables(
            feature_configuration = features,
            cc_toolchain = toolchain,
            source_file = header.path,
            output_file = compiled.path,
            quote_include_directories = depset(["."]),
            use_pic = True,
            user_compile_flags = cpp.copts + cpp.cxxopts + ctx.attr.copts + ["-x", "c++-header"],
        ),
    )
    ctx.actions.run(
        mnemonic = "PrecompileHeader",
        executable = cc_common.get_tool_for_action(feature_configuration = features, action_name = ACTION_NAMES.cpp_compile),
        arguments = flags,
        inputs = depset([header, ctx.file.header] + ctx.files.includes, transitive = [toolchain.all_files]),
        outputs = [compiled],
        env = cc_common.get_environment_variables(
            feature_configuration = features,
            action_name = ACTION_NAMES.cpp_compile,
            variables = cc_common.empty_variables(),
        ),
    )
    return [DefaultInfo(files = depset([header, compiled]))]

precompiled_header = rule(
    implementation = _precompiled_header,
    doc = """Compiles HEADER. The outputs are a link NAME/HEADER and NAME/HEADER.gch.

    A library lists them in textual_hdrs. Its users compile with `-include` of NAME/HEADER, and GCC then reads the compiled
    one. Other compilers, and GCC with other flags, read the header itself.""",
    attrs = {
        "header": attr.label(mandatory = True, allow_single_file = [".h"]),
        "includes": attr.label_list(allow_files = [".h"], doc = "headers of this repository that HEADER includes"),
        "copts": attr.string_list(doc = "flags of the users beyond those of the command line"),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
