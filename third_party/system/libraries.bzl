"""libraries: what links some of Debian's libraries. Usually they are shared; with --define=libraries=static (the config
`bundle`) they become a part of the program, which hides their names from what else it loads."""

def libraries(names):
    """NAMES, each before those it needs."""
    archives = ["lib%s.a" % name for name in names]
    words = ["--start-group"] + ["-l:" + archive for archive in archives] + ["--end-group"]
    return select({
        "//third_party/system:static": ["-Wl," + ",".join(words + ["--exclude-libs", ":".join(archives)])],
        "//conditions:default": ["-l" + name for name in names],
    })
