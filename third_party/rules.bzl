"""tw_library and tw_test are cc_library and cc_test, with names of files that follow from the name of the target. Both
depend on Abseil."""

_ABSL = "//third_party/system:absl"

def tw_library(name, srcs = None, hdrs = None, deps = [], test_deps = None, test_size = "medium", test_tags = [], **kwargs):
    """A cc_library of NAME.h and NAME.cc, as far as these files exist and SRCS or HDRS do not say otherwise.

    Args:
      name: name of the library.
      srcs: sources, if they are others than NAME.cc.
      hdrs: headers, if they are others than NAME.h.
      deps: libraries besides Abseil.
      test_deps: if not None, NAME_test is a tw_test that depends on NAME and on these libraries.
      test_size: size of the test.
      test_tags: tags of the test.
      **kwargs: further arguments of cc_library.
    """
    native.cc_library(
        name = name,
        srcs = native.glob([name + ".cc"]) if srcs == None else srcs,
        hdrs = native.glob([name + ".h"]) if hdrs == None else hdrs,
        deps = deps + [_ABSL],
        **kwargs
    )
    if test_deps != None:
        tw_test(
            name = name + "_test",
            size = test_size,
            tags = test_tags,
            deps = [":" + name] + test_deps,
        )

def tw_test(name, srcs = None, deps = [], **kwargs):
    """A cc_test of NAME.cc, if SRCS does not say otherwise, with the main function of GoogleTest."""
    native.cc_test(
        name = name,
        srcs = [name + ".cc"] if srcs == None else srcs,
        deps = deps + [_ABSL, "//third_party/system:gtest_main"],
        **kwargs
    )
