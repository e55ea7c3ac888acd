# fuzz_target: a libFuzzer target from NAME.cc. With --config=fuzz (.bazelrc) it is linked with libFuzzer, and
# tests/fuzz/run.sh runs it. Otherwise it is an ordinary test, in which random_inputs.cc takes the place of libFuzzer: so
# every build compiles and links the target.
def fuzz_target(name, deps):
    native.cc_test(
        name = name,
        size = "small",
        srcs = [name + ".cc"],
        linkopts = select({
            "//tests/fuzz:fuzzing": ["-fsanitize=fuzzer"],
            "//conditions:default": [],
        }),
        tags = [
            "fuzz",
            "parses",
        ],
        deps = deps + select({
            "//tests/fuzz:fuzzing": [],
            "//conditions:default": [":random_inputs"],
        }),
    )
