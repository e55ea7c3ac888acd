"""libraries returns link flags for Debian libraries. The default is shared libraries. With --define=libraries=static (the
config `bundle`) they are linked statically, and their symbols are hidden from other libraries in the process."""

def libraries(names):
    """NAMES without "lib"; a library stands before the libraries it needs."""
    archives = ["lib%s.a" % name for name in names]
    words = ["--start-group"] + ["-l:" + archive for archive in archives] + ["--end-group"]
    return select({
        "//third_party/system:static": ["-Wl," + ",".join(words + ["--exclude-libs", ":".join(archives)])],
        "//conditions:default": ["-l" + name for name in names],
    })
