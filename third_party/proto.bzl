"""proto_cc and proto_py generate code from .proto files with the protoc and the gRPC plugins on the PATH."""

def proto_cc(name, srcs, deps = [], grpc = False, visibility = None):
    """Defines a cc_library NAME with the messages (and with grpc = True the services) in SRCS.

    Args:
      name: name of the library.
      srcs: .proto files of this package. Imports use paths relative to the workspace root.
      deps: proto_cc libraries with the imported files.
      grpc: True if the files define services.
      visibility: visibility of the library.
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

def proto_py(name, srcs, visibility = None):
    """Defines a rule NAME whose outputs are the Python modules STEM_pb2 and STEM_pb2_grpc of every file in SRCS.

    Args:
      name: name of the rule.
      srcs: .proto files of this package, with all files that they import. Imports use paths relative to the workspace root.
      visibility: visibility of the rule.
    """
    stems = [s[:-len(".proto")] for s in srcs]
    native.genrule(
        name = name,
        srcs = srcs,
        outs = [s + suffix for s in stems for suffix in ["_pb2.py", "_pb2_grpc.py"]],
        cmd = "protoc -I. --python_out=$(GENDIR) --grpc_out=$(GENDIR) " +
              "--plugin=protoc-gen-grpc=$$(command -v grpc_python_plugin) $(SRCS)",
        visibility = visibility,
    )
