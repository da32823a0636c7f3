"""python -m funcpipe export MODULE:ATTRIBUTE -o PATH --input-shape 1,28,28"""

import argparse
import importlib
import os
import sys
import warnings

import torch

from .export import ExportError, export


def find_model(reference):
    """What `module:attribute` names: a model, or the result of calling it when it is a function or
    class. Modules are looked for in the current folder too."""
    module_name, _, attribute = reference.partition(":")
    if not attribute:
        raise ExportError(f"'{reference}': write MODULE:ATTRIBUTE, for example mymodel:build")
    sys.path.insert(0, os.getcwd())
    try:
        value = importlib.import_module(module_name)
        for part in attribute.split("."):
            value = getattr(value, part)
    except (ImportError, AttributeError) as error:
        raise ExportError(f"'{reference}': {error}") from error
    finally:
        sys.path.pop(0)
    is_model = isinstance(value, (torch.nn.Module, list, tuple, dict))
    return value() if callable(value) and not is_model else value


def _shape(text):
    try:
        return [int(size) for size in text.split(",") if size]
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is no shape such as 1,28,28") from None


def _example(shape, dtype):
    size = [2] + shape
    return torch.rand(size, dtype=dtype) if dtype.is_floating_point else torch.zeros(size, dtype=dtype)


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m funcpipe")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("export", help="write a PyTorch model as a model archive")
    command.add_argument("model", metavar="MODULE:ATTRIBUTE", help="a model, or what returns it")
    command.add_argument("-o", "--output", required=True, metavar="PATH")
    command.add_argument(
        "--input-shape",
        required=True,
        action="append",
        type=_shape,
        metavar="N,N,...",
        help="of one sample, without the batch; repeat it for a model that takes a tuple",
    )
    command.add_argument("--input-dtype", default="float32", help="default: float32")
    command.add_argument("--name", help="of the model; default: its class name")
    options = parser.parse_args(arguments)
    dtype = getattr(torch, options.input_dtype, None)
    if not isinstance(dtype, torch.dtype):
        parser.error(f"--input-dtype: '{options.input_dtype}' is not a torch dtype")
    inputs = tuple(_example(shape, dtype) for shape in options.input_shape)
    warnings.showwarning = lambda message, *_: print(f"warning: {message}", file=sys.stderr)
    try:
        manifest = export(
            find_model(options.model),
            options.output,
            inputs if len(inputs) > 1 else inputs[0],
            options.name,
        )
    except ExportError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{options.output}: {len(manifest['layers'])} layers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
