"""Reads safetensors files with nothing but the standard library and torch."""

import json
import os
import struct


def load_safetensors(path):
    """The tensors of a .safetensors file by name, ready for load_state_dict. Raises ValueError,
    naming the file, when it is truncated."""
    import torch

    dtypes = {
        "F64": torch.float64,
        "F32": torch.float32,
        "F16": torch.float16,
        "BF16": torch.bfloat16,
        "I64": torch.int64,
        "I32": torch.int32,
        "I16": torch.int16,
        "I8": torch.int8,
        "U8": torch.uint8,
        "BOOL": torch.bool,
    }
    with open(path, "rb") as file:
        data = bytearray(file.read())  # writable, as torch wants it
    if len(data) < 8 or len(data) < 8 + struct.unpack_from("<Q", data)[0]:
        raise ValueError(f"{os.fspath(path)}: truncated: no whole safetensors header")
    start = 8 + struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    tensors = {}
    for name, facts in header.items():
        begin, end = (start + offset for offset in facts["data_offsets"])
        if end > len(data):
            raise ValueError(f"{os.fspath(path)}: truncated inside tensor '{name}'")
        if begin == end:
            tensors[name] = torch.empty(facts["shape"], dtype=dtypes[facts["dtype"]])
            continue
        values = torch.frombuffer(memoryview(data)[begin:end], dtype=dtypes[facts["dtype"]])
        tensors[name] = values.reshape(facts["shape"])
    return tensors
