"""libraries returns link flags for Debian libraries. By default the flags link shared libraries. With
--define=libraries=static (the config `bundle`), they link static archives and hide the archives' symbols from other
libraries in the process."""

def libraries(names):
    """Returns link flags. NAMES are library names without "lib", each before the libraries that it needs."""
    archives = ["lib%s.a" % name for name in names]
    words = ["--start-group"] + ["-l:" + archive for archive in archives] + ["--end-group"]
    return select({
        "//third_party/system:static": ["-Wl," + ",".join(words + ["--exclude-libs", ":".join(archives)])],
        "//conditions:default": ["-l" + name for name in names],
    })
