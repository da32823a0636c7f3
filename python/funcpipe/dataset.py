"""Reads datasets (docs/formats.md) and repeats the data order of a job, so that a plain PyTorch loop
sees the same batches. Needs numpy only where arrays are made.
"""

import json
import math
import os

_MASK = (1 << 64) - 1
_SHUFFLE, _DROPOUT = 1, 2  # RandomStream in src/core/batching.h
_VERSION = 1


class _Rng:
    """SplitMix64, as in src/base/rng.h."""

    def __init__(self, seed):
        self._state = seed & _MASK

    def __call__(self):
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        z = self._state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)

    def below(self, bound):
        return (self() * bound) >> 64


def derive_seed(seed, *ids):
    """The seed of the random stream named by `ids`."""
    for value in ids:
        seed = _Rng(seed ^ (value & _MASK))()
    return seed


def epoch_order(samples, epoch, seed, shuffle=True):
    """Record numbers in the order of one epoch, as a list."""
    order = list(range(samples))
    if shuffle:
        rng = _Rng(derive_seed(seed, _SHUFFLE, epoch))
        for i in range(samples, 1, -1):
            j = rng.below(i)
            order[i - 1], order[j] = order[j], order[i - 1]
    return order


def dropout_seed(seed, step, micro_batch, layer):
    """The seed set before layer `layer` (index in the whole model) runs forward on a micro-batch."""
    return derive_seed(seed, _DROPOUT, step, micro_batch, layer)


class Dataset:
    """A dataset in a folder.

    name, records, classes (0: the targets are no classes), inputs and targets (numpy arrays of
    shape [records, ...], read when first asked for). Raises ValueError, naming the file, for what
    is not a sound dataset. Sizes are checked, checksums are not (`funcpipe data inspect
    --verify` does).
    """

    def __init__(self, path):
        self._path = os.fspath(path)
        index_file = os.path.join(self._path, "index.json")
        with open(index_file, encoding="utf-8") as file:
            try:
                self._index = json.load(file)
            except ValueError as error:
                raise ValueError(f"{index_file}: not a dataset index: {error}") from None
        version = self._index.get("funcpipe_dataset")
        if version != _VERSION:
            raise ValueError(f"{index_file}: funcpipe_dataset is {version}, expected {_VERSION}")
        self.name = self._index["name"]
        self.records = self._index["records"]
        self.classes = self._index.get("classes", 0)
        self._columns = {}

    @property
    def inputs(self):
        return self._column("input")

    @property
    def targets(self):
        return self._column("target")

    def __len__(self):
        return self.records

    def _column(self, name):
        if name not in self._columns:
            self._columns[name] = self._read(name)
        return self._columns[name]

    def _read(self, name):
        import numpy

        facts = self._index[name]
        if facts["dtype"] == "bfloat16":
            raise ValueError(f"{self._path}: numpy has no bfloat16 ({name})")
        dtype = numpy.dtype(facts["dtype"]).newbyteorder("<")
        record_bytes = math.prod(facts["shape"]) * dtype.itemsize
        column = numpy.empty([self.records] + facts["shape"], dtype)
        first = 0
        for shard in self._index["shards"]:
            data = self._read_part(shard, name, shard["records"] * record_bytes)
            rows = numpy.frombuffer(data, dtype).reshape([shard["records"]] + facts["shape"])
            column[first : first + shard["records"]] = rows
            first += shard["records"]
        return column

    def _read_part(self, shard, name, size):
        file_name = os.path.join(self._path, shard["key"])
        if os.path.getsize(file_name) != shard["bytes"]:
            raise ValueError(f"{file_name}: expected {shard['bytes']} bytes")
        with open(file_name, "rb") as file:
            file.seek(shard[name]["offset"])
            return file.read(size)
