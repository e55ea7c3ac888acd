"""proto_cc: one C++ library from .proto files, made by the protoc and grpc_cpp_plugin on the PATH."""

def proto_cc(name, srcs, deps = [], grpc = False, visibility = None):
    """Makes a cc_library NAME of the messages (and with grpc = True the services) in SRCS.

    Args:
      name: the library.
      srcs: .proto files of this package; an import names its file from the workspace's root.
      deps: proto_cc libraries whose files these import.
      grpc: whether the files hold services.
      visibility: as everywhere.
    """
    stems = [s[:-len(".proto")] for s in srcs]
    headers = [s + ".pb.h" for s in stems]
    sources = [s + ".pb.cc" for s in stems]
    command = "protoc -I. --cpp_out=$(GENDIR) "
    if grpc:
        headers += [s + ".grpc.pb.h" for s in stems]
        sources += [s + ".grpc.pb.cc" for s in stems]
        command += "--grpc_out=$(GENDIR) --plugin=protoc-gen-grpc=$$(command -v grpc_cpp_plugin) "
    native.genrule(
        name = name + "_generated",
        srcs = srcs + [d + "_protos" for d in deps],
        outs = headers + sources,
        cmd = command + " ".join(["$(location %s)" % s for s in srcs]),
    )
    native.filegroup(
        name = name + "_protos",
        srcs = srcs,
        visibility = ["//visibility:public"],
    )
    native.cc_library(
        name = name,
        srcs = sources,
        hdrs = headers,
        copts = ["-w"],
        visibility = visibility,
        deps = deps + ["//third_party/system:grpc" if grpc else "//third_party/system:protobuf"],
    )
