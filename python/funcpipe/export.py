"""PyTorch models to model archives: one TorchScript file for each layer, and a manifest."""

import collections
import copy
import inspect
import json
import os
import shutil
import tempfile
import warnings

import torch

from .model import MANIFEST, VERSION

_DTYPES = {
    torch.float32: "float32",
    torch.float64: "float64",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.int64: "int64",
    torch.int32: "int32",
    torch.int16: "int16",
    torch.int8: "int8",
    torch.uint8: "uint8",
    torch.bool: "bool",
}


class ExportError(ValueError):
    """A model that cannot become an archive; the message names the layer and what to do."""


def export(model, path, example_input, name=None):
    """Writes `model` to the folder `path`; it is left as it was.

    model: an nn.Sequential, an ordered dict or a list of layers (nn.Module). Each layer takes what
        the one before returns, as its only argument: a tensor or a tuple of tensors.
    example_input: a tensor or tuple of tensors with the batch dimension first
        to tell it apart; the values matter only to layers that have to be traced.
    name: of the model; by default its class name.

    The folder is written whole or not at all; a model archive that is there is replaced. Returns
    the manifest. Raises ExportError.
    """
    layers = _layers_of(model)
    _refuse_tied_tensors(layers)
    value = _check_example(example_input)
    manifest = {
        "funcpipe_model": VERSION,
        "name": name or type(model).__name__,
        "input_is_tuple": isinstance(value, tuple),
        "inputs": _facts(value),
        "layers": [],
    }
    path = os.path.abspath(path)
    _check_target(path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    fresh = tempfile.mkdtemp(prefix=os.path.basename(path) + ".", dir=os.path.dirname(path))
    try:
        for index, (layer_name, layer) in enumerate(layers.items()):
            entry, value = _Layer(index, layer_name, layer).write(fresh, value)
            manifest["layers"].append(entry)
        with open(os.path.join(fresh, MANIFEST), "w", encoding="utf-8") as file:
            json.dump(manifest, file, indent=1)
            file.write("\n")
        os.chmod(fresh, 0o755)
        if os.path.isdir(path):
            shutil.rmtree(path)
        os.rename(fresh, path)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return manifest


def _check_target(path):
    if os.path.exists(path) and not os.path.isfile(os.path.join(path, MANIFEST)):
        raise ExportError(f"{path} exists and is not a model archive: it is left as it is")


def _layers_of(model):
    if isinstance(model, torch.nn.Sequential):
        layers = collections.OrderedDict(model._modules)
    elif isinstance(model, collections.abc.Mapping):
        layers = collections.OrderedDict(model)
    elif isinstance(model, (list, tuple, torch.nn.ModuleList)):
        layers = collections.OrderedDict((str(i), layer) for i, layer in enumerate(model))
    else:
        raise ExportError(
            f"a {type(model).__name__} is not a chain of layers: give an nn.Sequential, or a list "
            "or ordered dict of layers"
        )
    if not layers:
        raise ExportError("the model has no layers")
    for index, (name, layer) in enumerate(layers.items()):
        if not isinstance(layer, torch.nn.Module):
            raise ExportError(
                f"layer {index} ('{name}') is a {type(layer).__name__}, not an nn.Module: put it "
                "into the forward of a module"
            )
    return layers


def _refuse_tied_tensors(layers):
    seen = {}
    for name, layer in layers.items():
        for key, tensor in layer.state_dict(keep_vars=True).items():
            if tensor.numel() == 0:
                continue
            full = f"{name}.{key}"
            other = seen.setdefault(tensor.data_ptr(), full)
            if other != full:
                raise ExportError(
                    f"'{other}' and '{full}' are the same tensor: tied weights cannot be trained "
                    "in pieces; give each layer its own"
                )


def _check_example(example):
    value = tuple(example) if isinstance(example, (list, tuple)) else example
    members = value if isinstance(value, tuple) else (value,)
    if not members or not all(isinstance(t, torch.Tensor) for t in members):
        raise ExportError("the example input must be a tensor or a tuple of tensors")
    if any(t.dim() == 0 or t.shape[0] != members[0].shape[0] or t.shape[0] < 1 for t in members):
        raise ExportError("the example input needs a batch dimension first, of at least 1 sample")
    if members[0].shape[0] == 1:  # two, so that the batch dimension of outputs can be told
        value = _map(lambda t: torch.cat([t, t]), value)
    return value


def _facts(value):
    """dtype and shape of every member, for one sample."""
    members = value if isinstance(value, tuple) else (value,)
    return [{"dtype": _DTYPES[t.dtype], "shape": list(t.shape[1:])} for t in members]


def _map(function, value):
    if isinstance(value, tuple):
        return tuple(function(member) for member in value)
    return function(value)


def _first_line(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


class _Layer:
    """One layer on its way into the archive. Works on a copy, on the CPU."""

    def __init__(self, index, name, layer):
        self._name = name
        self._file = f"layer_{index:03}.pt"
        self._label = f"layer {index} ('{name}', {type(layer).__name__})"
        self._kind = getattr(layer, "original_name", type(layer).__name__)
        self._layer = copy.deepcopy(layer).cpu().train()
        self._takes_tuple = False
        self._check_dtypes()

    def write(self, folder, value):
        """Writes the file; returns the manifest's entry and the layer's output on `value`."""
        self._takes_tuple = isinstance(value, tuple)
        output = self._run_eager(value)
        module, method = self._to_torchscript(value, output)
        path = os.path.join(folder, self._file)
        module.train().save(path)
        module = torch.jit.load(path)
        entry = {
            "name": self._name,
            "kind": self._kind,
            "file": self._file,
            "export_method": method,
            "parameters": self._tensor_facts(module.named_parameters()),
            "buffers": self._tensor_facts(module.named_buffers()),
            "output_is_tuple": isinstance(output, tuple),
            "outputs": _facts(output),
        }
        return entry, output

    def _check_dtypes(self):
        for key, tensor in self._layer.state_dict().items():
            is_parameter = key in dict(self._layer.named_parameters())
            if tensor.dtype != torch.float32 and (is_parameter or tensor.is_floating_point()):
                self._fail(f"'{key}' is {tensor.dtype}; convert the model with .float()")

    def _fail(self, message):
        raise ExportError(f"{self._label}: {message}")

    @staticmethod
    def _tensor_facts(named):
        return [
            {"name": key, "dtype": _DTYPES[t.dtype], "shape": list(t.shape)} for key, t in named
        ]

    def _run_eager(self, value):
        self._layer.eval()
        try:
            with torch.no_grad():
                output = self._layer(_map(torch.clone, value))
        except Exception as error:
            self._fail(f"cannot run on {_describe(value)}: {_first_line(error)}{self._hint()}")
        finally:
            self._layer.train()
        self._check_output(output, value)
        return output

    def _check_output(self, output, value):
        members = output if isinstance(output, tuple) else (output,)
        batch = (value[0] if isinstance(value, tuple) else value).shape[0]
        for member in members:
            if not isinstance(member, torch.Tensor):
                where = " in a tuple" if isinstance(output, tuple) else ""
                self._fail(
                    f"returns a {type(member).__name__}{where}: a layer returns a tensor or a "
                    "tuple of tensors"
                )
            if member.dtype not in _DTYPES:
                self._fail(f"returns a tensor of type {member.dtype}, which is not supported")
            if member.dim() == 0 or member.shape[0] != batch:
                self._fail(
                    f"returns {_describe(output)} for a batch of {batch} samples: the first "
                    "dimension must be the batch"
                )

    def _to_torchscript(self, value, output):
        try:
            return self._script(value, output), "script"
        except Exception as error:
            script_error = _first_line(error)
        try:
            module = self._trace(value, output)
        except Exception as error:
            self._fail(
                "TorchScript can neither compile nor trace it.\n"
                f"  compiling: {script_error}\n  tracing: {_first_line(error)}\n"
                f"  Rewrite its forward with what TorchScript supports{self._hint()}"
            )
        warnings.warn(
            f"{self._label}: was traced, because TorchScript cannot compile it ({script_error}). "
            "It now behaves in evaluation as in training (dropout, batch norm), and takes the "
            f"branches the example took{self._hint()}",
            stacklevel=4,
        )
        return module, "trace"

    def _script(self, value, output):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = torch.jit.script(self._layer)
        self._check_same_structure(module.eval(), value, output)
        return module

    def _trace(self, value, output):
        before = copy.deepcopy(self._layer.state_dict())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = torch.jit.trace(self._layer, (value,), check_trace=False)
        module.load_state_dict(before)
        twice = _map(lambda t: torch.cat([t, t]), value)
        doubled = _map(lambda t: torch.cat([t, t]), output)
        self._check_same_structure(copy.deepcopy(module), value, output)
        try:
            self._check_same_structure(copy.deepcopy(module), twice, doubled)
        except Exception:
            raise ExportError("the trace works for the example's batch size only") from None
        return module

    @staticmethod
    def _check_same_structure(module, value, expected):
        with torch.no_grad():
            output = module(_map(torch.clone, value))
        if _describe(output) != _describe(expected):
            raise ExportError(f"returns {_describe(output)} instead of {_describe(expected)}")

    def _hint(self):
        """What usually is wrong, judged by the signature of forward."""
        try:
            parameters = list(inspect.signature(self._layer.forward).parameters.values())
        except (TypeError, ValueError):
            return ""
        if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
            return ". Its forward takes *args or **kwargs: give it one parameter"
        if len([p for p in parameters if p.default is p.empty]) > 1:
            return (
                ". Its forward takes several arguments: a layer gets one; take a tuple, "
                "annotated x: Tuple[Tensor, Tensor]"
            )
        if self._takes_tuple and parameters[0].annotation is inspect.Parameter.empty:
            return ". It takes a tuple: annotate it, def forward(self, x: Tuple[Tensor, Tensor])"
        return ""


def _describe(value):
    members = value if isinstance(value, tuple) else (value,)
    texts = [
        f"{list(t.shape)} {_DTYPES.get(t.dtype, t.dtype)}"
        if isinstance(t, torch.Tensor)
        else type(t).__name__
        for t in members
    ]
    return f"({', '.join(texts)})" if isinstance(value, tuple) else texts[0]
