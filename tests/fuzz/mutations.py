"""Random changes of protobuf messages and of payloads. Equal seeds give equal changes."""

from google.protobuf.descriptor import FieldDescriptor

NUMBERS = (0, 1, 2, 7, 8, 63, 64, 65, 100, 4096, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53, 2**62, 2**63 - 1,
           2**63, 2**64 - 1)
TEXTS = ("", "a", "train", "\0", '"\n\t\\', "\u202e\U0001f600", "%s%n", "../../x", "x" * 64, "y" * 100_000)
RANGES = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}


def mutate_number(rng, number):
    return rng.choice([rng.choice(NUMBERS), number + 1, number - 1, -number, rng.getrandbits(rng.randint(1, 64))])


def mutate_bytes(rng, data):
    """Changes, cuts or extends bytes."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 3, 10))):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(5)
        if kind == 0:
            data[at:at] = rng.randbytes(rng.choice((1, 4, 40)))
        elif kind == 1:
            del data[at : at + rng.choice((1, 4, 1000))]
        elif kind == 2 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 3 and data:
            data[rng.randrange(min(len(data), 16))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        else:
            data += data[: rng.randrange(64)]
    return bytes(data)


def _mutated_value(rng, field, value):
    if field.cpp_type in RANGES:
        least, most = RANGES[field.cpp_type]
        return min(max(mutate_number(rng, value), least), most)
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return not value
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        return rng.choice(field.enum_type.values).number
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING and field.type == FieldDescriptor.TYPE_BYTES:
        return mutate_bytes(rng, value)
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return rng.choice(TEXTS)
    return rng.choice((0.0, -1.0, 1e300, float("inf"), float("nan")))


def mutate_message(rng, message):
    """Changes one field of a message, or of a message in it."""
    field = rng.choice(message.DESCRIPTOR.fields)
    is_message = field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE
    if field.label != FieldDescriptor.LABEL_REPEATED:
        if is_message:
            mutate_message(rng, getattr(message, field.name))
        else:
            setattr(message, field.name, _mutated_value(rng, field, getattr(message, field.name)))
        return
    values = getattr(message, field.name)
    kind = rng.randrange(4)
    if not values or kind == 0:
        for _ in range(rng.choice((1, 1, 2, 50))):
            if is_message:
                mutate_message(rng, values.add())
            else:
                values.append(_mutated_value(rng, field, field.default_value or 0 if field.cpp_type in RANGES else ""))
        return
    at = rng.randrange(len(values))
    if kind == 1:
        del values[at]
    elif is_message and kind == 2:
        values.add().CopyFrom(values[at])
    elif is_message:
        mutate_message(rng, values[at])
    else:
        values[at] = _mutated_value(rng, field, values[at])
